"""References on the application's own log records: a logging filter and a structlog processor."""

from toolfault.telemetry.stamping import ContextFilter, structlog_processor

__all__ = ["ContextFilter", "structlog_processor"]
