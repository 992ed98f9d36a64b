"""What an exception carries besides its type: a status, a time to wait, what caused it.

Exceptions are foreign objects: any attribute may be missing, of another type, or raise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

#: Longer waits (s) are cut: a day is later than any conversation, and the number is foreign input.
MAX_RETRY_AFTER = 86_400.0
_NUMBER = re.compile(r"[0-9]{1,30}(\.[0-9]{1,30})?")


def links(error: BaseException, seen: set[int]) -> Iterator[Exception]:
    """The exception, then what it was raised from, outermost first; ends at a cancellation.

    `seen` (ids) ends cycles, also those that lead through the parts of a group.
    """
    link: BaseException | None = error
    while isinstance(link, Exception) and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = cause(link)


def cause(error: BaseException) -> BaseException | None:
    """What the exception itself names as its cause: by `from`, or by holding its context."""
    if error.__cause__ is not None or error.__suppress_context__:
        return error.__cause__
    context = error.__context__
    return context if any(argument is context for argument in error.args) else None


def read(holder: object, name: str) -> Any:
    """An attribute, or None where it is missing or raises."""
    try:
        return getattr(holder, name, None)
    except Exception:  # noqa: BLE001 - foreign properties raise what they like
        return None


def text(error: BaseException) -> str:
    """The exception's text, for recognising it; nobody is ever shown it."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - foreign `__str__`
        return ""


def status(error: BaseException) -> int | None:
    """The HTTP status an exception carries, or None."""
    response = read(error, "response")
    told = [
        read(holder, name) for holder in (error, response) for name in ("status_code", "status")
    ]
    told.append(_metadata(response, "HTTPStatusCode"))
    return next((int(s) for s in told if isinstance(s, int) and 100 <= s <= 599), None)


def retry_after(error: BaseException) -> float | None:
    """Seconds the other side asks to wait (`Retry-After`, as seconds or as a date), or None."""
    response = read(error, "response")
    places = read(response, "headers"), read(error, "headers"), _metadata(response, "HTTPHeaders")
    for headers in places:
        if isinstance(told := header(headers, "Retry-After"), str):
            return _seconds(told.strip(), header(headers, "Date"))
    return None


def _metadata(response: object, name: str) -> Any:
    """From the dict in which botocore keeps what the HTTP response said."""
    metadata = response.get("ResponseMetadata") if isinstance(response, dict) else None
    return metadata.get(name) if isinstance(metadata, dict) else None


def header(headers: object, name: str) -> Any:
    """A header's value, from any mapping of headers, or None."""
    get = read(headers, "get")
    if not callable(get):
        return None
    try:
        return get(name) or get(name.lower())
    except Exception:  # noqa: BLE001 - a foreign mapping
        return None


def _seconds(told: str, date: object) -> float | None:
    if _NUMBER.fullmatch(told):
        return min(float(told), MAX_RETRY_AFTER)
    until = _moment(told)
    if until is None:
        return None
    # By the clock that wrote the date, so that a wrong one on either side costs nothing.
    now = _moment(date) or datetime.now(UTC)
    return min(max((until - now).total_seconds(), 0.0), MAX_RETRY_AFTER)


def _moment(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
