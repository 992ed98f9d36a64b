"""Times as people give them: an age, a day, or a time with its zone."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta

from toolfault.settings import SettingError

FORMS = "an age such as 30m, 2h or 7d, a day such as 2026-11-30 (from 0:00 UTC), or 2026-11-30T14:00:00Z"
_AGE = re.compile(r"(\d{1,6})([smhdw])", re.ASCII)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def moment(text: str | None) -> str | None:
    """A time with its zone, as the API takes it, where one is given.

    Raises:
        SettingError: it is none.
    """
    if text is None:
        return None
    try:
        found = _moment(text.strip())
    except (ValueError, OverflowError):
        found = None
    if found is None or found.tzinfo is None:
        raise SettingError(f"{text!r} is not a time. Give {FORMS}.")
    return found.isoformat()


def _moment(text: str) -> datetime:
    if age := _AGE.fullmatch(text):
        return datetime.now(UTC) - timedelta(**{_UNITS[age[2]]: int(age[1])})
    try:
        return datetime.combine(date.fromisoformat(text), time.min, UTC)
    except ValueError:
        return datetime.fromisoformat(text)
