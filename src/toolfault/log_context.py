"""References on the application's own log records: a logging filter and a structlog processor."""

from toolfault.telemetry.black_box import BlackBoxHandler
from toolfault.telemetry.stamping import ContextFilter, structlog_processor

__all__ = ["BlackBoxHandler", "ContextFilter", "structlog_processor"]
