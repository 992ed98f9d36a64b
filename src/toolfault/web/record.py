"""What stands in a record's attributes: read as it may come, none of it trusted to be there."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from toolfault import conventions as names
from toolfault import envelope
from toolfault.taxonomy import ACTIONS_WITH_REFERENCE, Action, Code, Outcome
from toolfault.web.models import Attempt, ExceptionDetail, LogLine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolfault.store.queries.references import Call, Log

_E = TypeVar("_E", bound=StrEnum)
_LEVELS = ((21, "FATAL"), (17, "ERROR"), (13, "WARN"), (9, "INFO"), (5, "DEBUG"), (0, "TRACE"))
_MOST_ATTEMPTS = 50


def told(call: Call, attributes: Mapping[str, Any]) -> dict[str, Any] | None:
    """The envelope the model read, made from the record as the library made it.

    None where it read none, or where the record does not say what: it came from a foreign library.
    """
    code, action = member(Code, call.code), member(Action, call.action)
    if code is None or action is None or call.message is None:  # ok and cancelled have no code
        return None
    if call.outcome == Outcome.DECLINED:
        return envelope.declined(call.reason or code, call.message, action, call.reference_id)
    return envelope.error(
        code,
        call.message,
        action,
        reason=call.reason,
        field=text(attributes.get(names.FIELD)),
        # known of others as well, and not told
        retry_after=(
            number(attributes.get(names.RETRY_AFTER)) if action is Action.RETRY_LATER else None
        ),
        ref=call.reference_id if action in ACTIONS_WITH_REFERENCE else None,
    )


def attempts(attributes: Mapping[str, Any]) -> tuple[Attempt, ...]:
    """The tries of a call, timed from its start; none when the record has no list."""
    listed = _json(attributes.get(names.ATTEMPT_LIST))
    if not isinstance(listed, list):
        return ()
    tries = [one for one in listed if isinstance(one, dict)]
    began = whole(attributes.get(names.START)) or min(
        (start for one in tries if (start := whole(one.get(names.ATTEMPT_START)))), default=0
    )
    return tuple(_attempt(i, one, began) for i, one in enumerate(tries[:_MOST_ATTEMPTS], start=1))


def _attempt(position: int, one: Mapping[str, Any], began: int) -> Attempt:
    start = whole(one.get(names.ATTEMPT_START)) or began
    end = whole(one.get(names.ATTEMPT_END)) or start
    return Attempt(
        number=whole(one.get(names.ATTEMPT_NUMBER)) or position,
        offset=max(start - began, 0) / 1e9,
        duration=max(end - start, 0) / 1e9,
        waited=number(one.get(names.ATTEMPT_WAITED)) or 0.0,
        code=text(one.get(names.ATTEMPT_CODE)),
        reason=text(one.get(names.ATTEMPT_REASON)),
        effect=text(one.get(names.ATTEMPT_EFFECT)),
    )


def is_exception(log: Log) -> bool:
    """Whether a log record is exception detail."""
    return log.event_name == names.EXCEPTION


def exception(log: Log) -> ExceptionDetail:
    """Exception detail as the card shows it."""
    return ExceptionDetail(type=log.exception_type, message=log.body, stacktrace=log.stacktrace)


def log_line(log: Log) -> LogLine:
    """A log record as the card shows it."""
    level = next(word for least, word in _LEVELS if log.severity >= least)
    logger = text((log.attributes or {}).get(names.LOGGER_NAME))
    return LogLine(at=log.occurred_at, level=level, logger=logger, body=log.body or "")


def declared_reasons(declared: Mapping[str, Any]) -> dict[str, str]:
    """Reasons a tool declared, with the words for the user."""
    reasons = _json(declared.get(names.REASONS))
    if not isinstance(reasons, dict):
        return {}
    return {str(reason): text for reason, text in reasons.items() if isinstance(text, str)}


def member(kind: type[_E], value: str | None) -> _E | None:
    """A member of a closed set; None for a word this version does not know."""
    try:
        return kind(value) if value is not None else None
    except ValueError:
        return None


def _json(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return None


def declaration(declared: Mapping[str, Any]) -> dict[str, Any]:
    """What a tool says about itself."""
    return {
        "writes": boolean(declared.get(names.WRITES)),
        "idempotent": boolean(declared.get(names.IDEMPOTENT)),
        "owner": text(declared.get(names.OWNER)),
        "owner_contact": text(declared.get(names.OWNER_CONTACT)),
        "runbook": web_address(declared.get(names.RUNBOOK)),
        "reasons": declared_reasons(declared),
    }


def text(value: Any) -> str | None:
    """A text that says something."""
    return value if isinstance(value, str) and value else None


def number(value: Any) -> float | None:
    """A number, whole or not."""
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def whole(value: Any) -> int | None:
    """A whole number."""
    if isinstance(value, str) and value.isdigit():  # OTLP's JSON writes 64-bit numbers as text
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def boolean(value: Any, otherwise: bool | None = None) -> bool | None:
    """A truth value."""
    return value if isinstance(value, bool) else otherwise


def web_address(value: Any) -> str | None:
    """Only http addresses become links; `javascript:` and the like never do."""
    address = text(value)
    return address if address and address.startswith(("https://", "http://")) else None
