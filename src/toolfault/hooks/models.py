"""Model calls as the hooks of frameworks see them: one event for each, however often it is repeated.

How a hook uses it: `asks` before each attempt, under a key that the framework's seams share;
`answered`, `failed` (somebody may ask again) or `dropped` (nobody was asked) after it; and `over`
where nobody asks again. None of them raises, but `asks` where the application's own run has made
its `max_model_calls`. A call that the application repeats itself (`toolfault.model_calls`) is left
to it, on whichever side of the hook it is.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from toolfault.hooks.quiet import keep, never_raises
from toolfault.model_steps import OK, ModelCall, ModelStep, asked, offer
from toolfault.run import Run, RunLimitExceededError, current_run
from toolfault.telemetry import report

_NAMELESS = "unknown"


class ModelCalls:
    """The model calls of one hook."""

    def __init__(self) -> None:
        self._open: OrderedDict[Any, ModelCall] = OrderedDict()

    def asks(self, key: Any, model: object, run: Run | None) -> None:
        """A model is asked; again, where the last attempt under this key has failed.

        Args:
            key: by which the other seams find it.
            model: its name, as far as the framework tells.
            run: the run it belongs to, unless the application has opened one.

        Raises:
            RunLimitExceededError: the application's run may make no more model calls.
        """
        try:
            self._asks(key, model if isinstance(model, str) and model else _NAMELESS, run)
        except RunLimitExceededError:
            raise
        except Exception:  # noqa: BLE001 - telemetry guard
            report.note_fault()

    def _asks(self, key: Any, model: str, run: Run | None) -> None:
        call = self._open.get(key)
        if call is not None and call.error is not None and not call.over:
            call.repeated(call.error)
            call.model = model  # somebody may fall back on another one
        else:
            if call is None or call.attempts:
                self.dropped(key)  # one of which nobody told how it ended
                call = _offered()
            if call is None:
                return  # the application counts it
            call.model, call.run = model, current_run() or run
            call.admit()
            keep(self._open, key, call)
        call.began()

    @never_raises
    def expects(self, key: Any) -> None:
        """A call may begin under this key, in a context from which it does not reach the model."""
        if (call := _offered()) is not None:
            keep(self._open, key, call)

    @never_raises
    def named(self, key: Any, model: object) -> None:
        """The framework tells later which model it was."""
        if (call := self._open.get(key)) is not None and isinstance(model, str) and model:
            call.model = model

    @never_raises
    def again(self, key: Any) -> None:
        """The model is asked again by the framework, if its last attempt has failed."""
        call = self._open.get(key)
        if call is not None and call.error is not None:
            self._asks(key, call.model, call.run)

    @never_raises
    def attempts(self, key: Any) -> int:
        """How often the model has been asked under this key."""
        return call.attempts if (call := self._open.get(key)) is not None else 0

    def under_way(self, key: Any) -> bool:
        """Whether the model is busy with the call under this key."""
        return (call := self._open.get(key)) is not None and call.under_way

    @never_raises
    def emitted(self, key: Any) -> None:
        """Output has reached the application: to repeat it would say everything twice."""
        if (call := self._open.get(key)) is not None:
            call.emitted = True

    @never_raises
    def repeated(self, key: Any, times: int) -> None:
        """The framework tells, when it is over, how many attempts went before the last one."""
        if (call := self._open.get(key)) is not None and not call.over:
            for _ in range(times):
                call.began()

    @never_raises
    def answered(self, key: Any) -> None:
        """The model has answered."""
        if (call := self._open.pop(key, None)) is not None:
            call.ended(OK)

    @never_raises
    def failed(self, key: Any, error: BaseException) -> None:
        """The attempt failed; a cancellation ends the call."""
        if (call := self._open.get(key)) is None or not call.attempts:
            return
        if isinstance(error, Exception):
            call.error = error
        else:
            self.over(key)

    @never_raises
    def over(self, key: Any) -> None:
        """Nobody asks again; what has neither answered nor failed was cancelled."""
        if (call := self._open.pop(key, None)) is None:
            return
        if call.error is not None:
            call.gave_up(call.error)
        elif call.attempts:
            call.ended(None)

    @never_raises
    def dropped(self, key: Any) -> None:
        """Nobody was asked after all: somebody else has answered in the model's place."""
        if (call := self._open.pop(key, None)) is not None:
            call.hand_over()

    def keys(self, begins_with: Any) -> list[Any]:
        """Of the calls that have not ended, where keys have several parts."""
        return [key for key in self._open if key[0] == begins_with]


def stop_at_limit() -> None:
    """For a seam that is around those who repeat: they would take the limit for a failure.

    Raises:
        RunLimitExceededError: the application's run may make no more model calls.
    """
    run = current_run()
    if run is None or run.max_model_calls is None or isinstance(asked(), ModelStep):
        return
    if run.model_calls >= run.max_model_calls:
        ModelCall(run=run).admit()


def _offered() -> ModelCall | None:
    """A new call, which the application may take over; None where it has one of its own around."""
    if isinstance(asked(), ModelStep):
        return None
    offer(call := ModelCall())
    return call
