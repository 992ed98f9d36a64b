"""One logical call from its start to its answer: attempts, effect, advice, telemetry.

The guard and the framework hooks drive it; they differ only in who runs the body.
"""

from __future__ import annotations

import copy
import functools
import time
from collections.abc import Callable
from contextvars import Token
from typing import Any, NamedTuple

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context

from toolfault import budget, carried, envelope, retry, taxonomy
from toolfault import conventions as c
from toolfault.envelope import Envelope
from toolfault.error_map import ToolErrorMap
from toolfault.errors import ToolError, ToolFailure, ToolResultError
from toolfault.run import RanTool, Run, current_run
from toolfault.taxonomy import Action, Code, Effect, Outcome
from toolfault.telemetry import current, declared, detail, report, spans
from toolfault.telemetry.declared import Tool
from toolfault.telemetry.record import Attempt, Attributes, ToolCall

#: Asked when a call has failed: the text for the model, or None where the caller is to handle it.
Decide = Callable[[ToolError, "Call"], str | None]


class Call:
    """One logical call of a tool.

    Use: `begin()` before each attempt, then `succeeded(result)` or `failed(error)`. `failed`
    gives the seconds to wait before the next attempt, or None when the call is over and `answer`
    and `error` say how. `start()` comes first, `stop()` last; a stream steps out of the call with
    `leave()` while its consumer runs, and back with `enter()`.
    """

    __slots__ = (
        "_earliest",
        "_effect",
        "_finished",
        "_run",
        "_span_token",
        "_started",
        "_token",
        "_twice",
        "_unheard",
        "_waited",
        "answer",
        "attempts",
        "budget_limit",
        "call_id",
        "current",
        "decide",
        "error",
        "error_map",
        "escalates",
        "max_attempts",
        "span",
        "start_ns",
        "tool",
    )

    def __init__(
        self,
        tool: Tool,
        error_map: ToolErrorMap,
        *,
        max_attempts: int = 1,
        budget_limit: int = budget.DEFAULT_LIMIT,
        call_id: str | None = None,
        run: Run | None = None,
    ) -> None:
        self.tool = tool
        self.error_map = error_map
        self.max_attempts = max_attempts
        self.budget_limit = budget_limit
        self.call_id = call_id
        self.attempts: list[Attempt] = []
        self.answer: Envelope | None = None  # set when the call ended without success
        self.error: ToolError | None = None
        self.decide: Decide | None = None  # says what the model reads of a failure
        self.escalates = False  # it said nothing: the failure is the caller's
        self._effect = Effect.NONE
        self._twice = False
        self._waited = 0.0
        self._started = 0  # unix ns of the attempt that is under way, else 0
        self._finished = False
        self._run = current_run() or run

    # --- life ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Open or adopt the span and make this the current call."""
        self.start_ns = time.time_ns()
        self._earliest = time.perf_counter_ns()
        if self._run is not None:
            self._run.began(self.tool.name)
        self._unheard = report.is_off()
        if self._unheard:
            self.span = spans.NOWHERE
        else:
            self.span = self._reported_span()
            self.start_ns = spans.start_of(self.span.span, self.start_ns)
        self.current = current.CurrentCall(self.tool.name, self.span.span)
        self.enter()

    def _reported_span(self) -> spans.CallSpan:
        try:
            declared.announce()
            return self._open_span()
        except Exception:  # noqa: BLE001 - a sampler or processor of somebody else
            report.note_fault()
            return spans.NOWHERE

    def _open_span(self) -> spans.CallSpan:
        outer = current.current_call()
        return spans.open_or_adopt(
            self.tool.name, self._identity(), self.start_ns, outer.span if outer else None
        )

    def enter(self) -> None:
        """Make this the current call and its span the current span."""
        self._token: Token[Any] = current.set_current(self.current)
        self._span_token: Token[Context] | None = None
        if self.span.owned:
            self._span_token = otel_context.attach(trace.set_span_in_context(self.span.span))

    def leave(self) -> None:
        """Undo `enter`."""
        current.reset_current(self._token)  # first: it refuses in a foreign context, OTel only logs
        if self._span_token is not None:
            otel_context.detach(self._span_token)

    def stop(self) -> None:
        """Leave for good; a call that was left in the middle ends as cancelled."""
        if not self._finished:
            self._cancelled()
        self.leave()

    def begin(self) -> None:
        """An attempt starts now."""
        self._started = time.time_ns()

    def succeeded(self) -> None:
        """The attempt returned a result that may enter the run."""
        self._reset_budget()
        if self._unheard and self._run is None:
            self._finished = True
            return
        effect = taxonomy.effect_of(Outcome.OK, None, writes=self.tool.writes)
        self._note_attempt(Outcome.OK, None, effect)
        self._finish(Outcome.OK)

    def failed(self, raised: BaseException) -> float | None:
        """The attempt raised. Seconds to wait before the next one, or None when the call is over.

        Raises:
            BaseException: `raised`, when it is a cancellation; reported first.
        """
        if not isinstance(raised, Exception):
            self._cancelled()
            raise raised
        error = self._classified(raised)
        self._note_attempt(error.outcome, error, self._effect_of(error))
        wait = self._wait_before_next(error, untyped=error.reason == taxonomy.UNMAPPED_FAILURE)
        if wait is None:
            self.conclude(error, raised)
        return wait

    def _cancelled(self) -> None:
        if self._started:
            effect = taxonomy.effect_of(Outcome.CANCELLED, None, writes=self.tool.writes)
            self._note_attempt(Outcome.CANCELLED, None, effect)
        self._finish(Outcome.CANCELLED)

    def _classified(self, raised: Exception) -> ToolError:
        try:
            error = self.error_map.classify(raised, tool=self.tool.name)
            # Rules are the author's: one may return anything.
            return error if isinstance(error, ToolError) else self._nameless()
        except Exception:  # noqa: BLE001 - a rule that raises, an exception made to be awkward
            report.note_fault()
            return self._nameless()

    def _nameless(self) -> ToolError:
        return ToolFailure(self.tool.name, taxonomy.UNMAPPED_FAILURE, code=Code.INTERNAL)

    def never_ran(self, error: ToolError) -> Envelope:
        """The call was turned away before anything ran; what the model is to read."""
        self._effect = error.effect or Effect.NONE
        return self.conclude(error, error)

    # --- attempts --------------------------------------------------------------------------------

    def _note_attempt(self, outcome: Outcome, error: ToolError | None, effect: Effect) -> None:
        if self.attempts:
            self._effect, self._twice = taxonomy.fold_effect(
                self._effect, outcome, effect, idempotent=self.tool.idempotent
            )
        else:
            self._effect = effect
        attempt = Attempt(
            len(self.attempts) + 1,
            self._started,
            time.time_ns(),
            error.code if error else None,
            error.reason if error else None,
            effect,
            self._waited,
        )
        self.attempts.append(attempt)
        self._started = 0

    def _effect_of(self, error: ToolError) -> Effect:
        if error.effect is not None:
            return error.effect
        if isinstance(error, ToolResultError):
            return Effect.APPLIED if self.tool.writes else Effect.NONE
        return taxonomy.effect_of(
            error.outcome, error.code, writes=self.tool.writes, nothing_landed=error.transient
        )

    def _wait_before_next(self, error: ToolError, *, untyped: bool) -> float | None:
        tool = self.tool
        if len(self.attempts) >= self.max_attempts or not retry.may_repeat(
            error, untyped=untyped, writes=tool.writes, idempotent=tool.idempotent
        ):
            return None
        wait = retry.backoff(len(self.attempts), error.retry_after)
        if wait > retry.LONGEST_WAIT:
            return None  # the model can go on with something else meanwhile
        if (run := self._run) is not None:
            if not run.may_retry(tool.name) or wait >= run.remaining():
                return None
            run.count_retry(tool.name)
        self._waited = wait
        return wait

    def _elapsed(self) -> int:
        return time.perf_counter_ns() - self._earliest

    # --- the end ---------------------------------------------------------------------------------

    def conclude(self, error: ToolError, raised: BaseException) -> Envelope:
        """Give the advice, build the answer and report the failure."""
        try:
            return self._concluded(error, raised)
        except Exception:  # noqa: BLE001 - an error made to be awkward; the model gets an answer
            report.note_fault()
            self.decide = None
            return self._concluded(nameless := self._nameless(), nameless)

    def _concluded(self, error: ToolError, raised: BaseException) -> Envelope:
        if error is not raised:
            error.raw_error = raised
        self.error = error = self._asked(error)
        action, failures = self._advice(error)
        ref = self.current.reference_id
        if error.outcome is Outcome.DECLINED:
            message = envelope.safe(error.message or taxonomy.MESSAGES[error.code])
            self.answer = envelope.declined(error.reason, message, action, ref)
        else:
            stopped = failures if failures >= self.budget_limit else 0
            message = envelope.message_for(error, action, ref, stopped)
            self.answer = envelope.error(
                error.code,
                message,
                action,
                reason=error.reason,
                field=error.field,
                retry_after=error.retry_after if action is Action.RETRY_LATER else None,
                ref=ref if action in taxonomy.ACTIONS_WITH_REFERENCE else None,
            )
        error.reference_id, error.answer = ref, self.answer
        told = Ending(error, raised, action, message, failures)
        self._finish(error.outcome, told)
        return self.answer

    def _asked(self, error: ToolError) -> ToolError:
        """The error with the text of a handler, if one has something to say."""
        if self.decide is None or error.outcome is Outcome.DECLINED:
            return error
        text = self.decide(error, self)
        self.escalates = text is None
        if text is None:
            return error
        told = copy.copy(error)  # an author may raise one instance again and again
        told.message = text
        return told

    def _advice(self, error: ToolError) -> tuple[Action, int]:
        """The action and the consecutive failures, 0 where the budget does not count."""
        remaining = float("inf") if self._run is None else self._run.remaining()
        advise = functools.partial(
            taxonomy.action_for,
            error.outcome,
            error.code,
            self._effect,
            transient=error.transient,
            idempotent=self.tool.idempotent,
            out_of_time=remaining <= (error.retry_after or 0),
        )
        action = advise()
        if error.outcome is Outcome.DECLINED:
            self._reset_budget()
        if error.outcome is Outcome.DECLINED or action not in taxonomy.BUDGETED_ACTIONS:
            return action, 0
        failures = budget.failed(self.tool.name, *self._budget_place())
        return advise(budget_spent=failures >= self.budget_limit), failures

    def _budget_place(self) -> tuple[str, Any]:
        if self._run is None:
            return "", None
        return self._run.conversation_id or self._run.run_id, self._run.state

    def _reset_budget(self) -> None:
        budget.reset(self.tool.name, *self._budget_place())

    def _identity(self) -> Attributes:
        told: Attributes = {c.OPERATION_NAME: c.EXECUTE_TOOL, c.TOOL_NAME: self.tool.name}
        if self.call_id is not None:
            told[c.TOOL_CALL_ID] = self.call_id
        if (run := self._run) is not None:
            if run.agent is not None:
                told[c.AGENT_NAME] = run.agent
            if run.conversation_id is not None:
                told[c.CONVERSATION_ID] = run.conversation_id
        return told

    def _finish(
        self, outcome: Outcome, ending: Ending | None = None, elapsed: int | None = None
    ) -> None:
        self._finished = True
        if elapsed is None:
            elapsed = self._elapsed()
        run = self._run
        call = ToolCall(
            tool=self.tool.name,
            outcome=outcome,
            start=self.start_ns,
            duration=elapsed / 1e9,
            attempts=tuple(self.attempts),
            effect=self._effect,
            possibly_twice=self._twice,
            run_id=run.run_id if run else None,
            conversation_id=run.conversation_id if run else None,
            agent=run.agent if run else None,
            call_id=self.call_id,
        )
        if ending is not None:
            call = ending.recorded_on(call, self)
        if run is not None:
            run.finished(RanTool(call.tool, outcome, call.effect, call.reference_id))
        raised = ending.raised if ending else None
        end = self.start_ns + elapsed
        report.finished(self.span, call, end=end, error=raised, box=self.current.box)
        if ending is not None and ending.failures == self.budget_limit:
            report.budget_exhausted(self.span, call)


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
            reference_id=call.current.reference_id,
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
