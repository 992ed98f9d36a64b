"""One model call of a run: its attempts, its limit, its events. Who loops is `model_calls`."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, NamedTuple

from toolfault import conventions as c
from toolfault import retry, safe_log
from toolfault.model_errors import is_transient, typed
from toolfault.run import Run, RunLimitExceededError, current_run
from toolfault.telemetry import detail, events, run_events
from toolfault.telemetry.record import Attributes

_log = logging.getLogger(__name__)

OK, ERROR, EXHAUSTED = "ok", "error", "exhausted"
#: Looks at a failed model call: what to use in its place, or None to let it fail.
OnModelError = Callable[[Exception], Any]


class Policy(NamedTuple):
    """How model calls are repeated."""

    model: str
    max_attempts: int
    is_transient: Callable[[BaseException], bool]
    on_error: Sequence[OnModelError]


class ModelCall:
    """One call of a model: one of its run's, and told once, however many attempts it takes.

    Args:
        model: its name.
        run: the run it belongs to.
    """

    def __init__(self, model: str = "", run: Run | None = None) -> None:
        self.model = model
        self.run = run
        self.over = False
        self.attempts = 0
        self.error: Exception | None = None  # of the last attempt, while somebody may make another
        self.emitted = False  # output has reached the caller: nothing may be repeated

    def admit(self) -> None:
        """Count it as one of its run's.

        Raises:
            RunLimitExceededError: the run may make no more; reported once for a run.
        """
        if (run := self.run) is None:
            return
        limit, calls = run.max_model_calls, run.count_model_call()
        if limit is None or calls <= limit:
            return
        if calls == limit + 1:
            run_events.send(c.RUN_LIMIT_EXCEEDED, {c.LIMIT: limit}, run, events.WARN)
        raise RunLimitExceededError(limit, run.run_id, run.agent)

    @property
    def under_way(self) -> bool:
        """Whether the provider is busy with it."""
        return self.attempts > 0 and self.error is None and not self.over

    def began(self) -> None:
        """The provider is asked now."""
        self.error = None
        self.attempts += 1
        if self.run is not None:
            self.run.model_attempts += 1

    def passes(self, error: BaseException) -> bool:
        """Whether the same attempt could succeed in a moment."""
        return not self.emitted and is_transient(error)

    def repeated(self, error: Exception) -> None:
        """The attempt failed, and there will be another one."""
        run_events.send(c.MODEL_RETRY, self._about(error), self.run)

    def gave_up(self, error: Exception) -> None:
        """The attempt failed, and it was the last one."""
        if self.over:
            return
        result = EXHAUSTED if self.passes(error) else ERROR
        told = self._about(error) | {c.RESULT: result}
        run_events.send(c.MODEL_ERROR, told, self.run, events.WARN)
        self.ended(result)

    def ended(self, result: str | None) -> None:
        """It is over; later calls change nothing."""
        if self.over:
            return
        self.over = True
        told: Attributes = {c.REQUEST_MODEL: self.model, c.COUNT: self.attempts}
        if result is not None:
            told[c.RESULT] = result
        run_events.send(c.MODEL_CALL, told, self.run)

    def hand_over(self) -> None:
        """Leave it to who repeats it: it counts the attempts and tells of them, this one does not."""
        if self.run is not None and not self.over:
            self.run.model_attempts -= self.attempts
        self.over = True

    def _about(self, error: Exception) -> Attributes:
        told = typed(error)
        about: Attributes = {
            c.REQUEST_MODEL: self.model,
            c.COUNT: self.attempts,
            c.CODE: told.code.value,
            c.REASON: told.reason,
            c.EXCEPTION_TYPE: detail.type_name(error),
        }
        if told.retry_after is not None:
            about[c.RETRY_AFTER] = told.retry_after
        return about


class ModelStep(ModelCall):
    """One step that asks a model: `began()` before each attempt, then `failed` or `ended`.

    Where a framework's hook has seen the call begin already, this one takes it over.

    Raises:
        RunLimitExceededError: the run has made all the model calls it may.
    """

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy.model, current_run())
        self._policy = policy
        seen = asked()
        if seen is None or isinstance(seen, ModelStep):
            self.admit()
        else:
            seen.hand_over()

    @contextmanager
    def asking(self) -> Iterator[None]:
        """The provider is busy with it; a framework's hook inside counts nothing of its own."""
        token = _asked.set(self)
        try:
            yield
        finally:
            with suppress(ValueError):  # a coroutine that is thrown away ends in whichever context
                _asked.reset(token)

    def passes(self, error: BaseException) -> bool:
        """Whether the policy says that it does; one that raises hides no error, and says no."""
        try:
            return not self.emitted and self._policy.is_transient(error)
        except Exception:  # noqa: BLE001 - a rule of the application's
            safe_log.log(
                _log,
                logging.WARNING,
                "transient= raised, so %s is not asked again",
                self.model,
                exc_info=True,
            )
            return False

    def failed(self, error: BaseException) -> float | None:
        """Seconds until the next attempt; None when the step is over."""
        if not isinstance(error, Exception):
            self.ended(None)  # cancelled: neither a success nor a failure
            return None
        wait = self._wait(error) if self.passes(error) else None
        if wait is None:
            self.gave_up(error)
        else:
            self.repeated(error)
        return wait

    def _wait(self, error: Exception) -> float | None:
        if self.attempts >= self._policy.max_attempts:
            return None
        wait = retry.backoff(self.attempts, typed(error).retry_after)
        remaining = float("inf") if self.run is None else self.run.remaining()
        return wait if wait <= retry.LONGEST_WAIT and wait < remaining else None

    def instead(self, error: BaseException) -> Any:
        """What the first of the `on_error` functions that knows an answer gives.

        Raises:
            BaseException: `error`, where none of them does, and a cancellation always.
        """
        if isinstance(error, Exception):
            for handler in self._policy.on_error:
                if (answer := handler(error)) is not None:
                    return answer
        raise error

    def sleep(self, seconds: float) -> None:
        """Wait for the next attempt; whoever interrupts it ends the step."""
        try:
            time.sleep(seconds)
        except BaseException:
            self.ended(None)
            raise

    async def pause(self, seconds: float) -> None:
        """The same where others run meanwhile."""
        try:
            await asyncio.sleep(seconds)
        except BaseException:
            self.ended(None)
            raise


_asked: ContextVar[ModelCall | None] = ContextVar("toolfault_model_call", default=None)


def asked() -> ModelCall | None:
    """The model call that this code is inside of."""
    call = _asked.get()
    return call if call is not None and call.under_way else None


def offer(call: ModelCall) -> None:
    """A framework's hook has seen a model call begin: a `ModelStep` inside takes it over."""
    _asked.set(call)


def policy(
    model: str,
    max_attempts: int = 3,
    transient: Callable[[BaseException], bool] = is_transient,
    on_error: OnModelError | Sequence[OnModelError] = (),
) -> Policy:
    """The policy, checked.

    Raises:
        ValueError: an option that does not fit, said with what to do instead.
        TypeError: a rule or handler that is no function.
    """
    if not isinstance(model, str) or not model:
        raise ValueError("say which model is asked, such as model='gpt-5': metrics count by it")
    if max_attempts < 1:
        raise ValueError(
            f"max_attempts is {max_attempts!r}; the first attempt counts, give 1 or more"
        )
    handlers = (on_error,) if callable(on_error) else tuple(on_error)
    for name, given in (("transient", transient), *(("on_error", one) for one in handlers)):
        if not callable(given):
            raise TypeError(f"{name} is {given!r}; give a function of the exception")
    return Policy(model, max_attempts, transient, handlers)
