"""toolfault."""
