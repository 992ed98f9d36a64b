"""For the outermost handler: what to do about an error that ended a run.

try:
    answer = agent.run(question)
except Exception as error:
    verdict = callers.classify(error)

Never by sending the user's message again: what its tools did has happened.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from toolfault import carried
from toolfault.errors import ToolError
from toolfault.idempotency import idempotency_key
from toolfault.model_errors import is_transient, typed
from toolfault.run import Run, RunLimitExceededError
from toolfault.taxonomy import Code, Effect, Outcome
from toolfault.what_ran import fallback

__all__ = ["CallerAction", "Verdict", "classify", "idempotency_key"]


class CallerAction(StrEnum):
    """What to do with a run that ended in an error."""

    REPORT = "report"  # a person has to look: a bug, a loop, a credential
    RETRY_LATER = "retry_later"  # it passes: leave a dead letter, replay it with its keys
    GIVE_UP = "give_up"  # an answer, though not the one that was hoped for


class Verdict(NamedTuple):
    """What to do, why, and what to tell the user."""

    action: CallerAction
    code: Code
    reason: str
    reference_id: str | None
    message: str  # for the user; says what ran in the run


RUN_LIMIT_EXCEEDED = "run_limit_exceeded"
_LEADS = {
    CallerAction.REPORT: "Something went wrong.",
    CallerAction.RETRY_LATER: "This is not possible at the moment.",
    CallerAction.GIVE_UP: "This cannot be done as asked.",
}
_STUCK = "I got stuck on this request."
_ANSWERS = frozenset({Outcome.DECLINED, Outcome.REFUSED, Outcome.INVALID})
_REQUEST_CODES = frozenset({Code.INVALID_ARGUMENT, Code.NOT_FOUND, Code.CONFLICT})
_PASSING_CODES = frozenset({Code.UNAVAILABLE, Code.RATE_LIMITED})


def classify(
    error: BaseException, *, run: Run | None = None, words: Mapping[str, str] | None = None
) -> Verdict:
    """What the caller of a run does about the error it ended with.

    Args:
        error: what was raised; causes and groups are looked into.
        run: the run, where its scope has ended already; by default the current one.
        words: what each tool does in the user's words, for the message.

    Raises:
        BaseException: `error` itself, where it is a cancellation.
    """
    if not isinstance(error, Exception):
        raise error
    if _has_limit(error):
        told = fallback(_STUCK, words=words, run=run)
        return Verdict(CallerAction.REPORT, Code.INTERNAL, RUN_LIMIT_EXCEEDED, None, told)
    told_as = typed(error)
    of_tool = any(isinstance(link, ToolError) for link in carried.links(error, set()))
    action = _of_tool(told_as) if of_tool else _of_program(error)
    message = fallback(_LEADS[action], words=words, run=run)
    return Verdict(action, told_as.code, told_as.reason, told_as.reference_id, message)


def _of_tool(error: ToolError) -> CallerAction:
    if error.outcome in _ANSWERS:
        return CallerAction.GIVE_UP
    if error.outcome is Outcome.NOT_FOUND:
        return CallerAction.REPORT  # no such tool: a deployment mistake
    if error.transient or (error.code in _PASSING_CODES and not _stays(error)):
        return CallerAction.RETRY_LATER
    return CallerAction.GIVE_UP if error.code in _REQUEST_CODES else CallerAction.REPORT


def _stays(error: ToolError) -> bool:
    """Turned away for good: a certificate, a quota, a database that is not there."""
    return error.effect is Effect.NONE or error.code is Code.RATE_LIMITED


def _of_program(error: Exception) -> CallerAction:
    """Of the model or of the agent's own code."""
    return CallerAction.RETRY_LATER if is_transient(error) else CallerAction.REPORT


def _has_limit(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return any(map(_has_limit, error.exceptions))
    return any(isinstance(link, RunLimitExceededError) for link in carried.links(error, set()))
