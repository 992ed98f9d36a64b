"""The black box: what the application logged during a call, sent only when the call fails."""

from __future__ import annotations

import logging
from collections import deque
from typing import Any, NamedTuple

from toolfault import conventions as c
from toolfault.redact import cap
from toolfault.telemetry import detail, events
from toolfault.telemetry.current import CurrentCall, current_call
from toolfault.telemetry.record import Attributes

_MOST_RECORDS = 50
_MOST_CHARACTERS = 16 * 1024


class _Kept(NamedTuple):
    at: int  # unix ns
    level: int
    logger: str
    text: str


class Box:
    """The last 50 records of a call, 16 KiB at most."""

    __slots__ = ("_kept", "_size")

    def __init__(self) -> None:
        self._kept: deque[_Kept] = deque(maxlen=_MOST_RECORDS)
        self._size = 0

    def keep(self, record: _Kept) -> None:
        """Keep one record; the oldest make room."""
        if len(self._kept) == _MOST_RECORDS:
            self._size -= len(self._kept[0].text)
        self._kept.append(record)
        self._size += len(record.text)
        while self._size > _MOST_CHARACTERS:
            self._size -= len(self._kept.popleft().text)

    def send(self, reference_id: str, place: events.Place) -> None:
        """Emit what was kept, scrubbed and stamped with the reference."""
        for record in self._kept:
            attributes: Attributes = {c.REFERENCE_ID: reference_id, c.LOGGER_NAME: record.logger}
            events.emit(
                c.LOG,
                attributes,
                place=place,
                severity=events.severity_of_level(record.level),
                body=cap(record.text, c.MAX_TEXT),
                at=record.at,
            )


def install() -> None:
    """Watch every log record that the application makes; doing it again changes nothing.

    By the record factory and not by a handler: a handler on the root logger would silence
    `logging.basicConfig()` and Python's last resort, and so the application's own log.
    """
    make = logging.getLogRecordFactory()
    if hasattr(make, "keeps_for_toolfault"):
        return

    def factory(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = make(*args, **kwargs)
        if (call := current_call()) is not None:
            _keep(record, call)
        return record

    factory.keeps_for_toolfault = True  # type: ignore[attr-defined]
    logging.setLogRecordFactory(factory)


def _keep(record: logging.LogRecord, call: CurrentCall) -> None:
    # The exception text of a record is left out: it is the exception detail's to send.
    if record.name.startswith(("opentelemetry", "toolfault")) or detail.level() == "off":
        return
    try:
        text = record.getMessage()[: 2 * c.MAX_TEXT]
    except Exception:  # noqa: BLE001 - wrong arguments of a log call are not ours to raise
        told = record.msg if isinstance(record.msg, str) else "[unprintable]"
        text = told[: 2 * c.MAX_TEXT]
    if call.box is None:
        call.box = Box()
    at = int(record.created * 1_000_000_000)
    call.box.keep(_Kept(at, record.levelno, record.name[: c.MAX_NAME], text))
