"""The calls of tools, as the formatter, the hooks and the spans of the OpenAI Agents SDK show them.

No place of the SDK sees all of a call, so they meet in one `Seam`, which the making of the call's
`ToolContext` opens: there the call has its id, every other instrumentation has opened its span, and
what is made current reaches the tool.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any

from agents import FunctionTool
from agents.exceptions import (
    ToolInputGuardrailTripwireTriggered,
    ToolOutputGuardrailTripwireTriggered,
    ToolTimeoutError,
    UserError,
)
from agents.tool_context import ToolContext
from agents.tracing import get_current_span, get_current_trace

from toolfault.conventions import TOOL_TYPE
from toolfault.envelope import Envelope
from toolfault.error_map import ToolErrorMap
from toolfault.errors import (
    ToolArgumentValidationError,
    ToolError,
    ToolNotFoundError,
    ToolNotPermittedError,
    ToolResultError,
    ToolTimedOutError,
)
from toolfault.hooks.base import Observer, keep, never_raises
from toolfault.hooks.openai_agents_told import (
    answered_last,
    arguments_rejected,
    declared_as,
    error_told,
    id_of,
    names_of,
    place_of,
    trace_id,
)
from toolfault.hooks.returned import in_text
from toolfault.joined import JoinedCall
from toolfault.run import Run
from toolfault.taxonomy import Outcome

RULES = ToolErrorMap(
    {ToolOutputGuardrailTripwireTriggered: lambda tool, _: ToolResultError(tool)}
)  # fmt: skip


class Seam:
    """One logical call.

    Args:
        calls: who sees it.
        call: the open call.
        place: where its id is unique: the run.
        span_id: of the SDK's own span of it; None where its tracing is off.
    """

    __slots__ = ("answer", "call", "calls", "closed", "place", "span_id", "started", "wait")

    def __init__(self, calls: ToolCalls, call: JoinedCall, place: str, span_id: str | None) -> None:
        self.calls = calls
        self.call = call
        self.place = place
        self.span_id = span_id
        self.started = False
        self.closed = False
        self.wait: float | None = None  # until the next attempt of an acting hook
        self.answer: Envelope | None = None

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from all other calls."""
        return self.place, self.call.call_id or ""


SEAM: ContextVar[Seam | None] = ContextVar("toolfault_openai_agents", default=None)


_reported: OrderedDict[tuple[str, str], bool] = OrderedDict()  # of calls that never ran


class ToolCalls:
    """The calls of one hook.

    Args:
        **options: those of `toolfault.hooks.base.Observer`.
    """

    def __init__(self, **options: Any) -> None:
        self.observer = Observer(RULES, late=True, **options)
        self._open: OrderedDict[tuple[str, str], Seam] = OrderedDict()

    # --- the life of a call ----------------------------------------------------------------------

    @never_raises
    def opens(self, context: ToolContext[Any]) -> None:
        """A call has been given its context, in its own task."""
        seam = SEAM.get()
        if seam is not None and seam.call.call_id == context.tool_call_id and not seam.closed:
            return
        span = get_current_span()
        span_id = span.span_id if span is not None and get_current_trace() is not None else None
        opened = self._opened(context, context.tool_name, context.tool_call_id, span_id)
        if opened is not None:
            opened.call.open_span()
            SEAM.set(opened)
            keep(self._open, opened.key, opened)

    def _opened(
        self, context: Any, name: str, call_id: str, span_id: str | None = None
    ) -> Seam | None:
        call = self.observer.open(name, call_id=call_id, run=self.run_of(context))
        return None if call is None else Seam(self, call, place_of(context), span_id)

    def of(self, context: Any) -> Seam | None:
        """The call that this context belongs to."""
        seam = SEAM.get()
        if seam is None or seam.calls is not self or seam.call.call_id != id_of(context):
            return None
        return seam

    @never_raises
    def starts(self, context: Any, tool: Any) -> None:
        """The tool runs next."""
        self.observer.declare([told := declared_as(tool)])
        if not isinstance(context, ToolContext):
            return
        if self.of(context) is None:
            self.opens(context)
        if (seam := self.of(context)) is not None:
            seam.started = True
            if seam.call.span.owned:
                seam.call.span.span.set_attribute(TOOL_TYPE, told.type)
        acts = self.observer.act and isinstance(tool, FunctionTool)
        if acts and not isinstance(tool.on_invoke_tool, Repeating):
            tool.on_invoke_tool = Repeating(self, tool)

    @never_raises
    def raised(self, context: Any, error: Exception) -> Envelope | None:
        """The tool raised; the SDK will tell the model what this returns, if it is something."""
        if (seam := self.of(context)) is None:
            return None
        if arguments_rejected(error):
            return self.turned_away(seam, ToolArgumentValidationError(seam.call.tool.name))
        seam.wait = self.observer.wait(seam.call, error)
        if seam.wait is None:
            seam.answer = self.observer.failed(seam.call, error, close=False)
        return seam.answer

    @never_raises
    def returned(self, context: Any, tool: Any, result: Any, *, close: bool = True) -> None:
        """The tool, or what is around it, has an answer for the model."""
        if (seam := self.of(context)) is None or seam.closed:
            return
        if seam.call.outcome in (None, Outcome.CANCELLED):
            error = error_told(tool, result, repeated=bool(seam.call.attempts))
            if error is not None:
                self._failed(seam, error)
            elif seam.call.outcome is None:
                told = in_text(result) if isinstance(result, str) else result
                seam.answer = self.observer.ok(seam.call, told, close=False)
        if close:
            self.close(seam)

    @never_raises
    def ended(self, seam: Seam, error: BaseException | None) -> None:
        """The SDK's span of the call is over; with the exception that ended it, if there was one."""
        if seam.closed:
            seam.call.leave()
            return
        if isinstance(error, UserError) and error.__cause__ is not None:
            error = error.__cause__
        if error is None and seam.started:
            seam.closed = True  # an agent used as a tool waits for an approval
            self.observer.dropped(seam.call)
        elif error is None:
            seam.call.leave()  # it waits for an approval, or a guardrail has answered: see `read`
        elif isinstance(error, ToolInputGuardrailTripwireTriggered):
            self.turned_away(seam, ToolNotPermittedError(seam.call.tool.name))
        elif arguments_rejected(error):
            self.turned_away(seam, ToolArgumentValidationError(seam.call.tool.name))
        else:
            self._failed(seam, error)
            self.close(seam)

    def _failed(self, seam: Seam, error: BaseException) -> None:
        if isinstance(error, ToolTimeoutError):
            error = ToolTimedOutError(seam.call.tool.name)
        if seam.call.outcome is Outcome.CANCELLED and isinstance(error, ToolTimedOutError):
            seam.answer = seam.call.conclude(error, error)  # to a guard inside it was cancelled
        else:
            seam.answer = self.observer.failed(seam.call, error, close=False)

    def close(self, seam: Seam) -> None:
        """Report it, once."""
        if not seam.closed:
            seam.closed = True
            self._open.pop(seam.key, None)
            self.observer.close(seam.call)

    def turned_away(self, seam: Seam, error: ToolError) -> Envelope | None:
        """Nothing ran; reported once, whoever says so first."""
        seam.closed = True
        self._open.pop(seam.key, None)
        if seam.key in _reported:
            self.observer.dropped(seam.call)
            return None
        keep(_reported, seam.key, True)
        seam.answer = self.observer.turned_away(seam.call, error)
        return seam.answer

    # --- calls that never ran --------------------------------------------------------------------

    @never_raises
    def never_ran(self, context: Any, name: str, call_id: str, error: ToolError) -> Envelope | None:
        """A call was turned away."""
        seam = SEAM.get()
        if seam is None or seam.call.call_id != call_id or seam.closed:
            seam = self._opened(context, name, call_id)
        return None if seam is None else self.turned_away(seam, error)

    @never_raises
    def unknown(self, name: str) -> None:
        """The model has named a tool that does not exist, which ended the run."""
        call = self.observer.open(name, run=self.run_of(None))
        self.observer.turned_away(call, ToolNotFoundError(name))

    @never_raises
    def read(self, context: Any, items: Iterable[Any]) -> None:
        """What the model reads next tells of calls that a person or a guardrail has refused."""
        place, names = place_of(context), names_of(items)
        for call_id in answered_last(items):
            seam = self._open.get((place, call_id))
            name = names.get(call_id, "")
            if name and context.is_tool_approved(name, call_id) is False:
                self.never_ran(context, name, call_id, ToolNotPermittedError(name, "rejected"))
            elif seam is not None and not seam.started:
                self.turned_away(seam, ToolNotPermittedError(seam.call.tool.name))

    def run_of(self, context: Any, agent: Any = None) -> Run | None:
        """The run that a context belongs to, and an agent, where the context does not name it."""
        config = getattr(context, "run_config", None)
        named = getattr(agent or getattr(context, "agent", None), "name", None)
        trace = get_current_trace()
        group = getattr(config, "group_id", None) or getattr(trace, "group_id", None)
        return self.observer.run(trace_id(), group, named)


class Repeating:
    """What invokes a tool for an acting hook: by our policy, and with our envelope.

    Args:
        calls: who acts.
        tool: whose invocation it takes the place of.
    """

    def __init__(self, calls: ToolCalls, tool: FunctionTool) -> None:
        self._calls = calls
        self._tool = tool
        self._invoke: Any = tool.on_invoke_tool

    def __getattr__(self, name: str) -> Any:
        return getattr(self._invoke, name)  # the SDK keeps marks of its own on it

    async def __call__(self, context: ToolContext[Any], arguments: str) -> Any:
        """Run the tool until it has an answer for the model."""
        while True:
            try:
                result = await self._invoke(context, arguments)
            except Exception as error:
                answer = self._calls.raised(context, error)
                if (seam := self._calls.of(context)) is None or (
                    seam.wait is None and answer is None
                ):
                    raise
                result = json.dumps(answer, default=str)
            else:
                seam = self._calls.of(context)
            if seam is None or seam.wait is None:
                return self._answer(context, seam, result)
            await asyncio.sleep(seam.wait)
            seam.wait = None

    def _answer(self, context: ToolContext[Any], seam: Seam | None, result: Any) -> Any:
        if seam is None:
            return result
        self._calls.returned(context, self._tool, result, close=False)
        return result if seam.answer is None else json.dumps(seam.answer, default=str)
