"""Whether and when the loop repeats a call by itself, out of the model's sight."""

from __future__ import annotations

import random

from toolfault.errors import ToolError
from toolfault.taxonomy import Code, Outcome

MAX_TOOL_ATTEMPTS = 12  # retries one tool may use in a run
LONGEST_WAIT = 30.0  # s; a conversation is not kept waiting longer out of its model's sight
_BASE = 0.5  # s
_REPEATABLE = frozenset({Code.UNAVAILABLE, Code.RATE_LIMITED})


def may_repeat(error: ToolError, *, untyped: bool, writes: bool, idempotent: bool) -> bool:
    """Whether the same call may be made again without asking anybody.

    A transient failure says itself that nothing landed. Whatever may have landed (a time-out, a
    gateway error, an exception nobody typed) is repeated only where that can do no harm.
    """
    if error.outcome not in (Outcome.FAILED, Outcome.TIMED_OUT):
        return False
    if error.transient:
        return True
    harmless = idempotent or not writes
    return harmless and (untyped or error.code in _REPEATABLE)


def backoff(attempt: int, retry_after: float | None = None) -> float:
    """Seconds to wait after the `attempt`-th attempt (1, 2, ...) failed.

    Half of an exponential step plus up to as much again, so that callers spread; never less
    than `retry_after`.
    """
    step = min(_BASE * 2.0 ** min(attempt - 1, 16), LONGEST_WAIT)
    jittered = step / 2 + random.uniform(0, step / 2)  # noqa: S311 - spreads load, guards nothing
    return max(jittered, retry_after or 0.0)
