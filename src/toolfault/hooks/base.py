"""What the hooks of all frameworks share.

How a hook is written: it makes one `Observer`, opens a call where the framework starts a tool
(`open`), and says at whichever seam comes first how it ended: `ok`, `failed`, `turned_away`
(nothing ran) or `dropped` (it has not ended: it waits for somebody). Seams that share no frame find
the call by its id with `opened`. All of them return what the model is to read instead, or None to
change nothing, which is always so unless the hook acts. None of them raises, but `attempt`, which
runs the tool and passes its errors on.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, TypeVar

from toolfault import budget, envelope, taxonomy
from toolfault import conventions as c
from toolfault.attempts import tool_named
from toolfault.envelope import Envelope
from toolfault.error_map import ToolErrorMap
from toolfault.errors import ToolError
from toolfault.hooks import returned
from toolfault.hooks.quiet import keep, never_raises, quietly
from toolfault.joined import JoinedCall, SpanMode
from toolfault.run import Run
from toolfault.taxonomy import Outcome
from toolfault.telemetry import declared, events, report
from toolfault.telemetry.declared import Tool
from toolfault.telemetry.record import Attributes
from toolfault.transport import TRANSPORT
from toolfault.turned_away import report_unregistered

__all__ = ["Observer", "keep", "never_raises", "quietly"]

R = TypeVar("R")

_KEPT_RUNS = 1_000


class Observer:
    """The calls of one hook.

    Args:
        rules: what the framework's own exceptions mean; asked after `error_map`.
        act: the model receives our envelope, failures are repeated by our policy and the budget
            lives on the framework's session state. Otherwise nothing the agent does changes.
        span: "auto" enriches the framework's span, or opens one where there is none; "always" opens
            one; "never" opens none.
        late: the framework opens its span after the seam that opens the call.
        error_map: the application's rules.
        max_attempts: attempts per call of an acting hook, the first included.
        budget_limit: answers in a row that say "later" before the model is told to stop.
        tools: what the application declares of tools that are not guarded.
    """

    def __init__(
        self,
        rules: ToolErrorMap | None = None,
        *,
        act: bool = False,
        span: SpanMode = "auto",
        late: bool = False,
        error_map: ToolErrorMap | None = None,
        max_attempts: int = 1,
        budget_limit: int = budget.DEFAULT_LIMIT,
        tools: Iterable[Tool] = (),
    ) -> None:
        if span not in ("auto", "always", "never"):
            raise ValueError(f"span is {span!r}; write 'auto', 'always' or 'never'")
        if max_attempts > 1 and not act:
            raise ValueError(
                f"max_attempts={max_attempts} needs act=True: a hook that only observes repeats nothing"
            )
        self.act = act
        self._span_mode: SpanMode = span
        self._late = late
        rules = rules.before(TRANSPORT) if rules else TRANSPORT
        self._error_map = error_map.before(rules) if error_map else rules
        self._max_attempts = max_attempts
        self._budget_limit = budget_limit
        self._open: OrderedDict[Any, JoinedCall] = OrderedDict()
        self._runs: OrderedDict[str, Run] = OrderedDict()
        for tool in tools:
            if declared.known(tool.name) != tool:
                declared.declare(tool)

    # --- what the framework tells ----------------------------------------------------------------

    @never_raises
    def declare(self, tools: Iterable[Tool]) -> None:
        """Announce the framework's tools; what their authors declared is not overwritten."""
        for tool in tools:
            if declared.known(tool.name) is None:
                declared.declare(tool)

    @never_raises
    def run(
        self,
        run_id: str | None,
        conversation_id: str | None,
        agent: str | None = None,
        state: MutableMapping[str, Any] | None = None,
    ) -> Run:
        """The framework's run; the budget is on its state only where we act."""
        run = self._runs.get(run_id) if run_id is not None else None
        if run is None:
            run = Run(conversation_id, run_id=run_id, agent=agent)
        if self.act and state is not None:
            run.state = state  # a framework gives every call a view of its own
        if run_id is not None:
            keep(self._runs, run_id, run, most=_KEPT_RUNS)
        return run

    @never_raises
    def open(
        self,
        name: str,
        *,
        call_id: str | None = None,
        key: Any = None,
        run: Run | None = None,
        span: SpanMode | None = None,
    ) -> JoinedCall:
        """A tool is about to be called.

        Args:
            name: of the tool.
            call_id: the model's id of the call.
            key: by which `opened` finds it.
            run: the run it belongs to, unless the application has opened one.
            span: whose span carries it, where that is not as the application chose.
        """
        call = JoinedCall(
            tool_named(name),
            self._error_map,
            span_mode=span or self._span_mode,
            late=self._late,
            max_attempts=self._max_attempts,
            budget_limit=self._budget_limit,
            call_id=call_id,
            run=run,
        )
        call.start()
        if key is not None:
            keep(self._open, key, call)
        return call

    def opened(self, key: Any, *, keep: bool = False) -> JoinedCall | None:
        """The open call with this key, which is then forgotten unless it is kept."""
        return self._open.get(key) if keep else self._open.pop(key, None)

    @never_raises
    def ok(self, call: JoinedCall | None, result: Any, *, close: bool = True) -> Envelope | None:
        """The tool returned; an error may be in what it returned.

        Args:
            call: the open call.
            result: what it returned, as its author would see it.
            close: report it now; else the framework may yet repeat it, and `close` ends it.
        """
        if call is None:
            return None
        if call.outcome is None:  # else a guard inside, or a seam nearer to the tool, has said it
            error = returned.error_in(result, call.tool.name)
            if error is None:
                call.succeeded()
            else:
                _conclude(call, error)
        if close:
            self.close(call)
        if not self.act or call.guarded or returned.is_envelope(result):
            return None
        return call.answer if call.failed_last else envelope.success(result)

    @never_raises
    def failed(
        self, call: JoinedCall | None, error: BaseException, *, close: bool = True
    ) -> Envelope | None:
        """The tool raised, or was cancelled."""
        if call is None:
            return None
        if call.outcome is None:  # else a guard inside, or `attempt`, has concluded it
            _conclude(call, error)
        if close:
            self.close(call)
        return call.answer if self.act else None

    @never_raises
    def close(self, call: JoinedCall | None) -> None:
        """Report how the call ended."""
        if call is None:
            return
        call.close()
        error = call.error if call.failed_last and not call.guarded else None
        if error is not None and error.reason in _EVENTS:
            told: Attributes = {
                c.TOOL_NAME: call.tool.name,
                c.REFERENCE_ID: call.reference_id,
            }
            report.send(_EVENTS[error.reason], told, call.span)

    @never_raises
    def turned_away(self, call: JoinedCall | None, error: ToolError) -> Envelope | None:
        """Nothing ran: unknown tool, denied, or arguments that do not match."""
        if call is None:
            return None
        answer = call.never_ran(error)
        call.close()
        if error.outcome is Outcome.NOT_FOUND:
            report_unregistered(call)
        return answer if self.act else None

    @never_raises
    def dropped(self, call: JoinedCall | None) -> None:
        """It has not ended: it waits for an approval, an interrupt or another program."""
        if call is not None:
            call.drop()

    @never_raises
    def give_up(self, begins_with: Any) -> None:
        """A run is over: its calls that nobody has closed are cancelled.

        Args:
            begins_with: first part of the keys of the run's calls.
        """
        for key in [key for key in self._open if key[0] == begins_with]:
            self.close(self.opened(key))

    @never_raises
    def run_limit(self, agent: str | None, limit: int | None = None) -> None:
        """A limit of the framework ended a run."""
        told: Attributes = {}
        if agent is not None:
            told[c.AGENT_NAME] = agent
        if limit is not None:
            told[c.LIMIT] = limit
        if events.is_on():
            events.emit(c.RUN_LIMIT_EXCEEDED, told, severity=events.WARN)

    # --- running the tool ------------------------------------------------------------------------

    async def attempt(
        self,
        call: JoinedCall | None,
        body: Callable[[], Awaitable[R]],
        control_flow: tuple[type[BaseException], ...] = (),
    ) -> R:
        """Run the tool; an acting hook repeats it by our policy. Raises what the tool raised.

        Args:
            call: the open call.
            body: runs the tool once.
            control_flow: what the framework raises to steer, which is no failure.
        """
        while True:
            try:
                return await body()
            except control_flow:
                raise
            except Exception as error:
                wait = self.wait(call, error)
                if wait is None:
                    raise
            await asyncio.sleep(wait)

    @never_raises
    def wait(self, call: JoinedCall | None, error: BaseException) -> float | None:
        """Seconds until the next attempt of an acting hook; None when there is none."""
        if call is None or not self.act or call.guarded or self._max_attempts == 1:
            return None
        wait = call.failed(error)
        if wait is not None:
            call.begin()
        return wait


_EVENTS = {
    taxonomy.UNMAPPED_FAILURE: c.BACKSTOP_REACHED,
    taxonomy.GENERIC_ERROR: c.GENERIC_ERROR,
}


def _conclude(call: JoinedCall, error: BaseException) -> None:
    call.max_attempts = 1
    try:
        call.failed(error)
    except BaseException as again:
        if again is not error:  # a cancellation, which the framework raises itself
            raise
