"""Which failures of a model call pass by themselves.

Built on the transport map, read for another case: a model call changes nothing, so that time-outs,
broken connections and faults of the provider may be repeated too, where a tool's call may not.
"""

from __future__ import annotations

from toolfault import carried
from toolfault.errors import ToolError
from toolfault.taxonomy import Code, Effect
from toolfault.transport import TRANSPORT

_MODEL = "model"
#: 409 is a lock the provider could not get in time; of the 5xx, 501 and 505 never pass.
_PASSING_STATUSES = frozenset({408, 409, 425, 429, *range(500, 600)} - {501, 505})
#: What providers write into an error event of a stream, whose own status was 200.
_PASSING_KINDS = frozenset(
    {
        "api_error", "overloaded_error", "rate_limit_error", "timeout_error",  # Anthropic
        "rate_limit_exceeded", "server_error", "slow_down",  # OpenAI
        "DEADLINE_EXCEEDED", "INTERNAL", "RESOURCE_EXHAUSTED", "UNAVAILABLE",  # Google
    }
)  # fmt: skip
_QUOTA_SPENT = "upstream_quota_spent"


def typed(error: Exception) -> ToolError:
    """The failure in the words of the taxonomy, for events and for whoever decides."""
    return TRANSPORT.classify(error, tool=_MODEL)


def is_transient(error: BaseException) -> bool:
    """Whether the same model call could succeed in a moment.

    Rate limits, overload, time-outs and broken connections are transient. Invalid requests, safety
    blocks, wrong credentials and a spent quota are not: repeating them only burns quota.
    """
    if not isinstance(error, Exception):
        return False
    told = typed(error)
    if told.transient:
        return True
    if told.reason == _QUOTA_SPENT:
        return False
    # Nothing was sent and it is not transient: a certificate that somebody has to renew.
    if told.code is Code.UNAVAILABLE and told.effect is not Effect.NONE:
        return True
    return any(_passes(link) for link in carried.links(error, set()))


def _passes(error: Exception) -> bool:
    status = carried.status(error)
    if status is None and isinstance(code := carried.read(error, "code"), int):
        status = code  # google-genai
    if status is not None and status >= 400:
        return status in _PASSING_STATUSES
    return _kind(carried.read(error, "body")) in _PASSING_KINDS


def _kind(body: object) -> object:
    """`type` or `status` of the error object in a body, with or without its envelope."""
    if not isinstance(body, dict):
        return None
    inner = body.get("error")
    told = inner if isinstance(inner, dict) else body
    kind = next((told[key] for key in ("type", "status", "code") if told.get(key)), None)
    return kind if isinstance(kind, str) else None
