"""PostgreSQL: schema, write path, retention, look-up statements, the embedded server."""
