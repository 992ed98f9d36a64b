"""The service's own log: one line a record on standard error, scrubbed."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

from toolfault.redact import scrub


class OneLine(logging.Formatter):
    """`time=... level=... logger=... message="..."`, whatever the message holds."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        told = record.getMessage()
        if record.exc_info:
            told += "\n" + self.formatException(record.exc_info)
        stamp = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        message = json.dumps(scrub(told), ensure_ascii=False)
        return (
            f"time={stamp} level={record.levelname.lower()} logger={record.name} message={message}"
        )


def configure(level: str) -> None:
    """Write every library's records from `level` on; those of uvicorn and Alembic from warnings on."""
    handler = logging.StreamHandler()
    handler.setFormatter(OneLine())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    logging.getLogger("alembic").setLevel(logging.WARNING)
