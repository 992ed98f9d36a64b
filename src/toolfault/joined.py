"""The one call that all seams of a framework share, joined on the framework's id of it.

A hook opens it, a guard inside drives it instead of a call of its own, the framework may run the
body again, and only when the hook closes it is it reported: once.
"""

from __future__ import annotations

from contextlib import suppress
from contextvars import Token
from typing import Any, Literal

from opentelemetry.trace import Span

from toolfault.call import Call
from toolfault.ending import Ending
from toolfault.error_map import ToolErrorMap
from toolfault.run import Run, current_run, reset_current, set_current
from toolfault.taxonomy import Outcome
from toolfault.telemetry import spans
from toolfault.telemetry.current import current_call
from toolfault.telemetry.declared import Tool

#: "auto": the framework's span is enriched, one of ours is opened where there is none. "always":
#: ours, whatever there is. "never": the framework's or none.
SpanMode = Literal["auto", "always", "never"]


class JoinedCall(Call):
    """A call that a framework's hook opens and closes, and anybody in between may drive.

    Args:
        tool: the tool.
        error_map: rules for what it raises.
        span_mode: whose span carries the record.
        late: the framework opens its span after this seam; it is looked for when the call closes.
        **options: those of `Call`.
    """

    def __init__(
        self,
        tool: Tool,
        error_map: ToolErrorMap,
        *,
        span_mode: SpanMode = "auto",
        late: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(tool, error_map, **options)
        self.guarded = False  # a guard inside has driven it; its word stands
        self._mode = span_mode
        self._late = late
        self._lent = self._entered = False
        self._run_token: Token[tuple[Run, ...]] | None = None
        self._ended: tuple[Outcome, Ending | None] | None = None
        self._lasted: int | None = None  # ns until it ended; it may be closed later

    def start(self) -> None:
        """Open it and offer it to a guard inside; an attempt of one who has borrowed it."""
        if self._lent:
            self.begin()
        else:
            super().start()

    def enter(self) -> None:
        """Make it the current call; it already is where it was borrowed."""
        if not self._lent:
            super().enter()
            self._entered = True
            if self.run is not None and current_run() is None:
                self._run_token = set_current(self.run)

    def leave(self) -> None:
        """Undo `enter`, as far as the framework has brought us back to the same context."""
        if self._entered and not self._lent:
            with suppress(ValueError):
                super().leave()
                self._entered = False
                if self._run_token is not None:
                    reset_current(self._run_token)
                    self._run_token = None

    def begin(self) -> None:
        """One more attempt starts now; what the one before it ended with is not the end."""
        self._finished, self._ended, self._lasted = False, None, None
        self.answer = None
        super().begin()

    def stop(self) -> None:
        """Give it back to the hook, or close it."""
        if self._lent:
            self._lent = False
            if not self._finished:
                self._ended = Outcome.CANCELLED, None
        else:
            self.close()

    def lend(
        self, tool: Tool, error_map: ToolErrorMap, max_attempts: int, budget_limit: int
    ) -> None:
        """Let a guard of the same tool drive it; what the author declared wins."""
        self.tool, self.error_map = tool, error_map
        self.max_attempts = len(self.attempts) + max_attempts
        self.budget_limit = budget_limit
        self.guarded = self._lent = True
        self.escalates = False

    @property
    def lent(self) -> bool:
        """Whether a guard is driving it now."""
        return self._lent

    @property
    def outcome(self) -> Outcome | None:
        """How it ended, as far as is known."""
        return self._ended[0] if self._ended else None

    @property
    def failed_last(self) -> bool:
        """Whether its last attempt failed, or nothing ran."""
        return self._ended is not None and self.answer is not None

    def adopt(self, span: Span | None = None) -> None:
        """Take the framework's span, which it has opened since; of several the last counts.

        Args:
            span: the span, where it is not the current one.
        """
        if not self._late or self._unheard or self._mode == "always":
            return
        found = self._framework_span() if span is None else spans.CallSpan(span, False, True)
        if found is not None:
            if self.span is spans.NOWHERE:
                self.start_ns = spans.start_of(found.span, self.start_ns)
            self.span = found

    def open_span(self) -> None:
        """The tool runs next, in the framework's span or in ours."""
        self.leave()
        self._settle_span()
        self.enter()

    def close(self) -> None:
        """Report how it ended; without an end it was cancelled."""
        if self._ended is not None or not self._finished:
            self._settle_span()
            outcome, ending = self._ended or (Outcome.CANCELLED, None)
            super()._finish(outcome, ending, self._lasted)
            self._ended = outcome, None  # without the exception, whose traceback may hold this call
        self.leave()

    def drop(self) -> None:
        """Close it unreported: it has not ended, such as one that waits for an approval."""
        if self.span.owned:
            self.span.span.end()
        if self.run is not None:
            self.run.dropped(self.tool.name)
        self.leave()

    def _open_span(self) -> spans.CallSpan:
        if self._late:
            return spans.NOWHERE
        if self._mode == "auto":
            return super()._open_span()
        if self._mode == "always":
            return spans.open_own(self.tool.name, self.identity(), self.start_ns)
        return self._framework_span() or spans.NOWHERE

    def _settle_span(self) -> None:
        if not self._late or self._unheard or self.span is not spans.NOWHERE:
            return
        self.adopt()
        if self.span is spans.NOWHERE and self._mode != "never":
            self.span = spans.open_own(self.tool.name, self.identity(), self.start_ns)

    def _framework_span(self) -> spans.CallSpan | None:
        outer = current_call()
        return spans.adopt(self.tool.name, outer.span.span if outer else None)

    def _finish(
        self, outcome: Outcome, ending: Ending | None = None, elapsed: int | None = None
    ) -> None:
        # Kept until the hook closes the call: a framework may run the body again.
        self._finished = True
        self._ended = outcome, ending
        self._lasted = self._elapsed() if elapsed is None else elapsed


def offered(tool: str) -> JoinedCall | None:
    """The call that a hook has opened around this code for this tool, if nobody drives it."""
    here = current_call()
    if here is None or not isinstance(here, JoinedCall):
        return None
    return here if here.tool.name == tool and not here.lent else None
