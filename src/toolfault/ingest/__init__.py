"""The ingestion service: OTLP in, committed rows out."""
