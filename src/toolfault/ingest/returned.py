"""Errors that came back as a result: envelopes, MCP's `isError`, frameworks' generic message.

Only where instrumentation records results at all; nothing of a result is stored but the envelope's
own fields.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from toolfault import conventions as c
from toolfault import taxonomy
from toolfault.ingest import wire
from toolfault.ingest.scrubbing import clean, reference
from toolfault.taxonomy import Action, Code, Effect, Outcome

_RESULTS = (
    "gen_ai.tool.call.result",
    "gcp.vertex.agent.tool_response",
    "tool_response",
    "output.value",
    "traceloop.entity.output",
)
#: Longer results are data; an error's envelope is short.
_LONGEST = 65_536
_HINTS = (b"error", b"Error", b"declined")
GENERIC_MESSAGE = "An internal error occurred."
_DEPTH = 4  # results are wrapped: {"output": {"result": "..."}}
_WRAPPERS = (
    "result",
    "output",
    "response",
    "content",
    "outputs",
    "kwargs",
    "structuredContent",
    "text",
)


class Answer(NamedTuple):
    """What a returned error says."""

    outcome: Outcome
    code: str | None = None
    reason: str | None = None
    action: Action | None = None
    effect: Effect | None = None
    reference: str | None = None
    message: str | None = None
    rest: Mapping[str, object] = {}


def find(attributes: Mapping[str, bytes]) -> Answer | None:
    """The error a span's recorded result holds; None if it holds none."""
    for key in _RESULTS:
        value = attributes.get(key)
        if value and len(value) <= _LONGEST and any(hint in value for hint in _HINTS):
            return _in_text(wire.text(value), _DEPTH)
    return None


def _in_text(told: str, depth: int) -> Answer | None:
    stripped = told.strip()
    if stripped == GENERIC_MESSAGE:
        return Answer(Outcome.FAILED, Code.INTERNAL.value, taxonomy.GENERIC_ERROR)
    if stripped[:1] not in ("{", "["):
        return None
    try:
        return _in(json.loads(stripped), depth)
    except (ValueError, RecursionError):
        return None


def _in(result: Any, depth: int) -> Answer | None:
    if depth == 0 or not result:
        return None
    if isinstance(result, str):
        return _in_text(result, depth - 1)
    if isinstance(result, list):
        return _first(result[:4], depth)
    return _in_object(result, depth) if isinstance(result, dict) else None


def _in_object(result: dict[str, Any], depth: int) -> Answer | None:
    if (found := _envelope(result)) is not None:
        return found
    found = _first([result[key] for key in _WRAPPERS if key in result], depth)
    if found is None and (result.get("isError") is True or result.get("is_error") is True):
        return Answer(Outcome.FAILED, None, taxonomy.RETURNED_ERROR)
    return found


def _first(results: list[Any], depth: int) -> Answer | None:
    return next((found for result in results if (found := _in(result, depth - 1))), None)


def _envelope(result: dict[str, Any]) -> Answer | None:
    status, error = result.get("status"), result.get("error")
    if status == "declined" and "output" in result:
        return Answer(Outcome.DECLINED, Code.CONFLICT.value)
    if status != "error":
        return None
    if not isinstance(error, dict) or error.get("code") not in Code.__members__:
        return Answer(Outcome.FAILED, None, taxonomy.RETURNED_ERROR)
    action = error.get("action")
    return Answer(
        Outcome.FAILED,
        error["code"],
        _text(error, "reason", c.MAX_NAME),
        Action(action) if isinstance(action, str) and action in set(Action) else None,
        None,
        _reference(error),
        _text(error, "message", c.MAX_MESSAGE),
        _rest(error),
    )


def _text(error: dict[str, Any], key: str, most: int) -> str | None:
    told = error.get(key)
    return clean(_repaired(told), most) or None if isinstance(told, str) else None


def _repaired(told: str) -> str:
    return told.encode("utf-8", "replace").decode()


def _reference(error: dict[str, Any]) -> str | None:
    told = error.get("ref")
    if not isinstance(told, str) or len(told) > c.MAX_REFERENCE:
        return None
    return reference(wire.value(told))


def _rest(error: dict[str, Any]) -> dict[str, object]:
    rest: dict[str, object] = {}
    if field := _text(error, "field", c.MAX_NAME):
        rest[c.FIELD] = field
    if isinstance(error.get("retryable"), bool):
        rest[c.RETRYABLE] = error["retryable"]
    waits = error.get("retry_after")
    if isinstance(waits, int | float) and not isinstance(waits, bool) and 0 <= waits < 1e9:
        rest[c.RETRY_AFTER] = float(waits)
    return rest
