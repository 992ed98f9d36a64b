"""The end of a call that failed: the advice, the answer, and what the record says of it."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

from toolfault import budget, carried, envelope, taxonomy
from toolfault.envelope import Envelope
from toolfault.errors import ToolError
from toolfault.run import Run
from toolfault.taxonomy import Action, Effect, Outcome
from toolfault.telemetry import detail
from toolfault.telemetry.declared import Tool
from toolfault.telemetry.record import ToolCall

if TYPE_CHECKING:
    from toolfault.call import Call


class Advice(NamedTuple):
    """What the model is to do, and how often in a row it was told to wait."""

    action: Action
    failures: int  # in a row; 0 where the budget does not count them
    spent: bool  # the budget is


def advise(
    error: ToolError, effect: Effect, tool: Tool, run: Run | None, budget_limit: int
) -> Advice:
    """The advice for a failure; one that says to wait counts in the budget."""
    remaining = float("inf") if run is None else run.remaining()
    action_for = functools.partial(
        taxonomy.action_for,
        error.outcome,
        error.code,
        effect,
        transient=error.transient,
        idempotent=tool.idempotent,
        out_of_time=remaining <= (error.retry_after or 0),
    )
    action = action_for()
    if error.outcome is Outcome.DECLINED or action not in taxonomy.BUDGETED_ACTIONS:
        return Advice(action, 0, spent=False)
    failures = budget.failed(tool.name, *budget_place(run))
    spent = failures >= budget_limit
    return Advice(action_for(budget_spent=spent), failures, spent)


def budget_place(run: Run | None) -> tuple[str, Any]:
    """Where the failures of a run are counted: in which conversation, in which mapping."""
    if run is None:
        return "", None
    return run.conversation_id or run.run_id, run.state


def answered(error: ToolError, advice: Advice, ref: str) -> tuple[Envelope, str]:
    """What the model is to read, and the message in it."""
    action = advice.action
    if error.outcome is Outcome.DECLINED:
        message = envelope.safe(error.message or taxonomy.MESSAGES[error.code])
        return envelope.declined(error.reason, message, action, ref), message
    message = envelope.message_for(error, action, ref, advice.failures if advice.spent else 0)
    answer = envelope.error(
        error.code,
        message,
        action,
        reason=error.reason,
        field=error.field,
        retry_after=error.retry_after if action is Action.RETRY_LATER else None,
        ref=ref if action in taxonomy.ACTIONS_WITH_REFERENCE else None,
    )
    return answer, message


class Ending(NamedTuple):
    """How a call failed and what was said about it."""

    error: ToolError
    raised: BaseException
    action: Action
    message: str
    failures: int  # in a row; 0 where the budget does not count them

    def recorded_on(self, record: ToolCall, call: Call) -> ToolCall:
        """The record with what the failure adds to it."""
        error = self.error
        cause = error.__cause__ if self.raised is error else self.raised
        words = error.user_message or call.tool.reasons.get(error.reason)
        return record._replace(
            code=error.code,
            reason=error.reason,
            reference_id=call.reference_id,
            action=self.action,
            transient=error.transient,
            retryable=taxonomy.is_retryable(self.action),
            retry_after=error.retry_after,
            field=error.field,
            evidence=envelope.safe(error.evidence) if error.evidence else None,
            message=None if _quotes(self.raised, error.message) else self.message,
            user_message=envelope.safe(words) if words else None,
            exception_type=detail.type_name(cause) if cause is not None else None,
            frame=detail.frame_of(self.raised) if call.attempts else None,
            budget_failures=self.failures or None,
            budget_limit=call.budget_limit if self.failures else None,
        )


def _quotes(raised: BaseException, message: str | None) -> bool:
    """Whether a handler made the message of an exception's own text: no span may carry that."""
    if message is None or isinstance(raised, ToolError):
        return False
    text = carried.text(raised).strip()
    return bool(text) and text[:100] in message
