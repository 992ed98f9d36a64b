"""The calls of tools, as the callbacks of LangChain and the wrapper around a tool see them.

The wrapper is around whatever may repeat the tool; it sees calls that never ran and can answer in
the tool's place. The callbacks see each attempt, with its exception and inside its span. Both meet
in one `Seam`, found through the context.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from types import TracebackType
from typing import Any
from uuid import UUID

from langchain_core.messages import ToolMessage
from langchain_core.tools import ToolException
from langgraph.errors import GraphBubbleUp

from toolfault import taxonomy
from toolfault.error_map import ToolErrorMap
from toolfault.errors import ToolArgumentValidationError, ToolError, ToolFailure
from toolfault.hooks import langgraph_messages as messages
from toolfault.hooks.base import Observer, keep, never_raises
from toolfault.hooks.langgraph_runs import RUNS, Root, openinference_span
from toolfault.hooks.langgraph_seam import SEAM, Failures, Seam
from toolfault.hooks.told import annotated, field_of
from toolfault.taxonomy import Code
from toolfault.telemetry import current


def _tool_exception(tool: str, error: BaseException) -> ToolError:
    return ToolFailure(
        tool, taxonomy.RETURNED_ERROR, code=Code.INTERNAL, message=str(error) or None
    )


RULES = ToolErrorMap({ToolException: _tool_exception})


_seen: OrderedDict[tuple[str, str], bool] = OrderedDict()


class ToolCalls:
    """The calls of one hook.

    Args:
        **options: those of `toolfault.hooks.base.Observer`.
    """

    def __init__(self, **options: Any) -> None:
        self.observer = Observer(RULES, late=True, **options)
        self._running: OrderedDict[UUID, Seam] = OrderedDict()
        self._waiting: OrderedDict[UUID, dict[str | None, Seam]] = OrderedDict()
        self._budgets: OrderedDict[str, Failures] = OrderedDict()
        self._declared: set[str] = set()

    def declare(self, tools: Iterable[Any]) -> None:
        """Announce tools of LangChain; told with every call, so that most are known."""
        new = [tool for tool in tools if tool.name not in self._declared]
        if new:
            self._declared.update(tool.name for tool in new)
            self.observer.declare(
                annotated(tool.name, tool.metadata, remote=messages.tells_hints(tool.metadata))
                for tool in new
            )

    def open(
        self,
        name: str,
        call_id: str | None,
        root: Root,
        *,
        agent: str | None = None,
        kept: dict[str, Any] | None = None,
        repeatable: bool = True,
    ) -> Seam | None:
        """A call begins.

        Args:
            name: of the tool.
            call_id: the model's id of it.
            root: the run it belongs to.
            agent: the agent that makes it, where it is not the run's.
            kept: what the graph's state holds of the failure budget; None where it has no place.
            repeatable: somebody inside may run the tool again.
        """
        failures = self._failures(root, kept) if kept is not None else None
        run = self.observer.run(root.run_id, root.conversation_id, agent or root.agent, failures)
        call = self.observer.open(name, call_id=call_id, run=run)
        if call is None:
            return None
        return Seam(self, call, repeatable=repeatable, failures=failures)

    def _failures(self, root: Root, kept: dict[str, Any]) -> Failures:
        failures = self._budgets.get(root.run_id) or Failures()
        failures.read(kept)
        keep(self._budgets, root.run_id, failures)
        return failures

    # --- the tool itself -------------------------------------------------------------------------

    @never_raises
    def starts(self, name: str, run_id: UUID, parent: UUID | None, told: dict[str, Any]) -> None:
        """The tool is about to run; a second time when somebody repeats it."""
        call_id = told.get("tool_call_id")
        seam = SEAM.get()
        if seam is None or seam.call.call_id != call_id:
            seam = self._without_wrapper(name, parent, call_id, told.get("metadata") or {})
        if seam is None or seam.calls is not self or seam.closed:
            return
        if seam.started:
            seam.call.begin()
        seam.started, seam.wait = True, None
        seam.call.leave()
        seam.call.enter()
        keep(self._running, run_id, seam)

    def _without_wrapper(
        self, name: str, parent: UUID | None, call_id: str | None, metadata: dict[str, Any]
    ) -> Seam | None:
        """The call of a tool that nothing of ours is around."""
        here = current.current_call()
        if here is not None and call_id in (None, getattr(here, "call_id", None)):
            return None  # a tool that uses another one; or another handler has the call
        if parent is not None and call_id in self._waiting.get(parent, ()):
            return self._waiting[parent].pop(call_id)
        root = RUNS.root(parent)
        return self.open(name, call_id, root, agent=metadata.get("lc_agent_name"))

    @never_raises
    def returned(self, run_id: UUID, output: Any) -> None:
        """The tool returned; that is final."""
        seam = self._running.pop(run_id, None)
        if seam is None:
            return
        self._adopt(seam, run_id)
        failed = isinstance(output, ToolMessage) and output.status == "error"
        if not failed:
            seam.answer = self.observer.ok(seam.call, messages.unwrapped(output))
        else:
            self._failed(seam, messages.error_told(output), close=True)
        seam.closed = True
        seam.call.leave()

    @never_raises
    def raised(self, run_id: UUID, parent: UUID | None, error: BaseException) -> None:
        """The tool raised; final unless somebody may repeat it."""
        seam = self._running.pop(run_id, None)
        if seam is None:
            return
        self._adopt(seam, run_id)
        if isinstance(error, GraphBubbleUp):
            self.pauses(seam)
            return
        if _arguments_rejected(error):
            error = ToolArgumentValidationError(seam.call.tool.name, field=field_of(error))
        seam.wait = self.observer.wait(seam.call, error)
        if seam.wait is None:
            alone = SEAM.get() is not seam
            close = parent is None if alone else not seam.repeatable
            self._failed(seam, error, close=close)
            if alone and not seam.closed and parent is not None:
                keep(
                    self._waiting,
                    parent,
                    {**self._waiting.get(parent, {}), seam.call.call_id: seam},
                )
        seam.call.leave()

    def _failed(self, seam: Seam, error: BaseException, *, close: bool) -> None:
        if isinstance(error, ToolArgumentValidationError) and not seam.call.attempts:
            if seam.call.outcome is None:
                seam.answer = self.observer.turned_away(seam.call, error)
                seam.closed = True
            return
        seam.answer = self.observer.failed(seam.call, error, close=close)
        seam.closed = close

    @never_raises
    def node_ended(self, run_id: UUID) -> None:
        """Nobody repeats what this run has done."""
        for seam in self._waiting.pop(run_id, {}).values():
            self.close(seam)

    # --- what is around it -----------------------------------------------------------------------

    def answered(self, seam: Seam, root: Root, name: str, unknown: bool, result: Any) -> None:
        """Something came back, from the tool or from what is around it.

        Args:
            seam: the call.
            root: the run it belongs to.
            name: of the tool.
            unknown: there is no such tool.
            result: what came back.
        """
        if seam.closed:
            return
        if seam.started:
            self.close(seam)
        elif not isinstance(result, ToolMessage) or result.status != "error":
            seam.answer = self.observer.ok(seam.call, messages.unwrapped(result))
        else:
            error = messages.never_ran(result, name, unknown=unknown)
            first_told(root, error, result)
            seam.answer = self.observer.turned_away(seam.call, error)
        seam.closed = True

    def broke(self, seam: Seam, error: BaseException) -> None:
        """An exception came out of the tool or of what is around it."""
        if not seam.closed and not seam.started:
            seam.answer = self.observer.failed(seam.call, error)
            seam.closed = True
        else:
            self.close(seam)

    def pauses(self, seam: Seam) -> None:
        """It waits for somebody, or hands over: not its end."""
        if not seam.closed:
            seam.closed = True
            self.observer.dropped(seam.call)

    def close(self, seam: Seam) -> None:
        """Report it, once."""
        if not seam.closed:
            seam.closed = True
            self.observer.close(seam.call)

    # --- what only messages tell -----------------------------------------------------------------

    @never_raises
    def read(self, root: Root, told: Any) -> None:
        """Calls that nothing was run for, and limits."""
        for message in messages.answers(told):
            if messages.tells_limit(message):
                self.limit(root)
            elif (error := messages.turned_away(message)) is not None and first_told(
                root, error, message
            ):
                run = self.observer.run(root.run_id, root.conversation_id, root.agent)
                call = self.observer.open(error.tool, call_id=message.tool_call_id, run=run)
                self.observer.turned_away(call, error)

    @never_raises
    def run_ended(self, root: Root, outputs: Any, error: BaseException | None) -> None:
        """The run that the application started is over."""
        told = outputs.get("messages") if isinstance(outputs, dict) else None
        self.read(root, told)
        if messages.ended_at_limit(told) or (error is not None and messages.is_limit(error)):
            self.limit(root)

    def limit(self, root: Root) -> None:
        """Report that a run reached a limit, once."""
        if first_seen(root, f"limit of {root.run_id}"):
            self.observer.run_limit(root.agent)

    def _adopt(self, seam: Seam, run_id: UUID) -> None:
        if (span := openinference_span(run_id)) is not None:
            seam.call.adopt(span)


def first_seen(root: Root, what: str) -> bool:
    """Whether nobody in this process has seen it before."""
    key = root.scope, what
    new = key not in _seen
    keep(_seen, key, True)
    return new


def first_told(root: Root, error: ToolError, message: ToolMessage) -> bool:
    """Whether nobody in this process has reported this call that never ran."""
    return first_seen(root, f"{error.outcome} {error.tool} {message.tool_call_id}")


def _arguments_rejected(error: BaseException) -> bool:
    """Whether it comes from reading the arguments, before the tool's own code."""
    return type(error).__name__ == "ValidationError" and _second(error) == "_to_args_and_kwargs"


def _second(error: BaseException) -> str | None:
    """The function called by the one that caught the error."""
    first: TracebackType | None = error.__traceback__
    second = first.tb_next if first is not None else None
    return second.tb_frame.f_code.co_name if second is not None else None
