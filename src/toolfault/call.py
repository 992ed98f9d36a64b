"""One logical call from its start to its answer: attempts, effect, advice, telemetry.

The guard and the framework hooks drive it; they differ only in who runs the body.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from contextvars import Token

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context

from toolfault import attempts, budget, taxonomy
from toolfault.ending import Ending, advise, answered, budget_place
from toolfault.envelope import Envelope
from toolfault.error_map import ToolErrorMap
from toolfault.errors import ToolError, ToolFailure, taken_over
from toolfault.run import RanTool, Run, current_run
from toolfault.taxonomy import Code, Effect, Outcome
from toolfault.telemetry import current, declared, report, spans
from toolfault.telemetry.current import CurrentCall
from toolfault.telemetry.declared import Tool
from toolfault.telemetry.record import Attempt, Attributes, ToolCall

#: Asked when a call has failed: the text for the model, or None where the caller is to handle it.
Decide = Callable[[ToolError, "Call"], str | None]


class Call(CurrentCall):
    """One logical call of a tool.

    Use: `start()` begins it and its first attempt, which ends with `succeeded()` or with
    `failed(error)`: that gives the seconds until the next attempt, which `begin()` begins, or None
    when the call is over and `answer` and `error` say how. `stop()` comes last; a stream does
    `leave()` while its consumer runs, then `enter()`.
    """

    answer: Envelope | None = None  # set when the call ended without success
    error: ToolError | None = None
    attempts: tuple[Attempt, ...] = ()
    decide: Decide | None = None  # says what the model reads of a failure
    escalates = False  # it said nothing: the failure is the caller's
    _effect = Effect.NONE
    _twice = False
    _waited = 0.0
    _started = 0  # unix ns of the attempt that is under way, else 0
    _finished = False
    _token: Token[CurrentCall | None]
    _span_token: Token[Context] | None = None

    def __init__(
        self,
        tool: Tool,
        error_map: ToolErrorMap,
        max_attempts: int = 1,
        budget_limit: int = budget.DEFAULT_LIMIT,
        *,
        call_id: str | None = None,
        run: Run | None = None,
    ) -> None:
        self.tool = tool
        self.error_map = error_map
        self.max_attempts = max_attempts
        self.budget_limit = budget_limit
        self.call_id = call_id
        self.run = current_run() or run

    # --- life ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Open or adopt the span and make this the current call; its first attempt starts now."""
        self.start_ns = self._started = time.time_ns()
        self._earliest = time.perf_counter_ns()
        if self.run is not None:
            self.run.began(self.tool.name)
        self._unheard = report.is_off(self._earliest)
        if not self._unheard:
            self.span = self._reported_span()
            self.start_ns = spans.start_of(self.span.span, self.start_ns)
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
            self.tool.name, self.identity(), self.start_ns, outer.span.span if outer else None
        )

    def identity(self) -> Attributes:
        """What the span is given when it is opened, for samplers."""
        return attempts.identity(self.tool, self.call_id, self.run)

    def enter(self) -> None:
        """Make this the current call and its span the current span."""
        self._token = current.set_current(self)
        if self.span.owned:
            self._span_token = otel_context.attach(trace.set_span_in_context(self.span.span))

    def leave(self) -> None:
        """Undo `enter`."""
        current.reset_current(self._token)  # first: it refuses in a foreign context, OTel only logs
        if self._span_token is not None:
            otel_context.detach(self._span_token)
            self._span_token = None

    def stop(self) -> None:
        """Leave for good; a call that was left in the middle ends as cancelled."""
        if not self._finished:
            self._cancelled()
        try:  # noqa: SIM105 - on every call
            self.leave()
        except ValueError:  # a coroutine that is thrown away ends in whichever context
            pass

    def begin(self) -> None:
        """One more attempt starts now."""
        self._started = time.time_ns()

    def succeeded(self) -> None:
        """The attempt returned a result that may enter the run."""
        if self._unheard and self.run is None:  # nobody is to hear of it
            budget.reset(self.tool.name)
            self._finished = True
            return
        self._reset_budget()
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
        self._note_attempt(error.outcome, error, attempts.effect_of(error, self.tool))
        wait = None
        if len(self.attempts) < self.max_attempts:
            wait = attempts.wait_for_next(error, len(self.attempts), self.tool, self.run)
        if wait is None:
            self.conclude(error, raised)
        else:
            self._waited = wait
        return wait

    def _cancelled(self) -> None:
        if self._started:
            effect = taxonomy.effect_of(Outcome.CANCELLED, None, writes=self.tool.writes)
            self._note_attempt(Outcome.CANCELLED, None, effect)
        self._finish(Outcome.CANCELLED)

    def _classified(self, raised: Exception) -> ToolError:
        try:
            error = self.error_map.classify(raised, tool=self.tool.name)
            # Rules and subclasses are the author's: one may return, the other hold anything.
            return error if attempts.is_sound(error) else self._nameless()
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
        self.attempts += (attempt,)
        self._started = 0

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
        # A rule may give one instance again and again; the call that comes first has it.
        if error is not raised and vars(error).setdefault("raw_error", raised) is not raised:
            error = taken_over(error)
            error.raw_error = raised
        self.error = error = self._asked(error)
        if error.outcome is Outcome.DECLINED:
            self._reset_budget()
        advice = advise(error, self._effect, self.tool, self.run, self.budget_limit)
        self.answer, message = answered(error, advice, self.reference_id)
        error.reference_id, error.answer = self.reference_id, self.answer
        self._finish(error.outcome, Ending(error, raised, advice.action, message, advice.failures))
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

    def _reset_budget(self) -> None:
        budget.reset(self.tool.name, *budget_place(self.run))

    def _finish(
        self, outcome: Outcome, ending: Ending | None = None, elapsed: int | None = None
    ) -> None:
        self._finished = True
        if elapsed is None:
            elapsed = self._elapsed()
        run = self.run
        if run is not None:
            reference = self.reference_id if ending else None
            run.finished(RanTool(self.tool.name, outcome, self._effect, reference))
        if self._unheard and report.is_off(time.perf_counter_ns()):
            return
        call = ToolCall(
            tool=self.tool.name,
            outcome=outcome,
            start=self.start_ns,
            duration=elapsed / 1e9,
            attempts=self.attempts,
            effect=self._effect,
            possibly_twice=self._twice,
            run_id=run.run_id if run else None,
            conversation_id=run.conversation_id if run else None,
            agent=run.agent if run else None,
            call_id=self.call_id,
        )
        if ending is not None:
            call = ending.recorded_on(call, self)
        raised = ending.raised if ending else None
        end = self.start_ns + elapsed
        report.finished(self.span, call, end=end, error=raised, box=self.box)
        if ending is not None and ending.failures == self.budget_limit:
            report.budget_exhausted(self.span, call)
