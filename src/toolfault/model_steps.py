"""One model call of a run: its attempts, its limit, its events. Who loops is `model_calls`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from toolfault import conventions as c
from toolfault import retry
from toolfault.model_errors import is_transient, typed
from toolfault.run import Run, RunLimitExceededError, current_run
from toolfault.telemetry import detail, events, run_events
from toolfault.telemetry.record import Attributes

OK, ERROR, EXHAUSTED = "ok", "error", "exhausted"
#: Looks at a failed model call: what to use in its place, or None to let it fail.
OnModelError = Callable[[Exception], Any]


class Policy(NamedTuple):
    """How model calls are repeated."""

    model: str
    max_attempts: int
    is_transient: Callable[[BaseException], bool]
    on_error: Sequence[OnModelError]


class ModelStep:
    """One step that asks a model: `began()` before each attempt, then `failed` or `ended`.

    Raises:
        RunLimitExceededError: the run has made all the model calls it may.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._run = current_run()
        self._over = False
        self.attempts = 0
        self.emitted = False  # output has reached the caller: nothing may be repeated
        if self._run is not None:
            admit(self._run)

    def began(self) -> None:
        """The provider is asked now."""
        self.attempts += 1
        if self._run is not None:
            self._run.model_attempts += 1

    def failed(self, error: BaseException) -> float | None:
        """Seconds until the next attempt; None when the step is over."""
        if not isinstance(error, Exception):
            self.ended(None)  # cancelled: neither a success nor a failure
            return None
        passing = not self.emitted and self._policy.is_transient(error)
        wait = self._wait(error) if passing else None
        if wait is None:
            self._report_error(error, result := EXHAUSTED if passing else ERROR)
            self.ended(result)
        else:
            self._report_retry(error)
        return wait

    def _wait(self, error: Exception) -> float | None:
        if self.attempts >= self._policy.max_attempts:
            return None
        wait = retry.backoff(self.attempts, typed(error).retry_after)
        remaining = float("inf") if self._run is None else self._run.remaining()
        return wait if wait <= retry.LONGEST_WAIT and wait < remaining else None

    def ended(self, result: str | None) -> None:
        """The step is over; later calls change nothing."""
        if self._over:
            return
        self._over = True
        told: Attributes = {c.REQUEST_MODEL: self._policy.model, c.COUNT: self.attempts}
        if result is not None:
            told[c.RESULT] = result
        run_events.send(c.MODEL_CALL, told, self._run)

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

    def _report_error(self, error: Exception, result: str) -> None:
        run_events.send(
            c.MODEL_ERROR, self._about(error) | {c.RESULT: result}, self._run, events.WARN
        )

    def _report_retry(self, error: Exception) -> None:
        run_events.send(c.MODEL_RETRY, self._about(error), self._run)

    def _about(self, error: Exception) -> Attributes:
        told = typed(error)
        about: Attributes = {
            c.REQUEST_MODEL: self._policy.model,
            c.COUNT: self.attempts,
            c.CODE: told.code.value,
            c.REASON: told.reason,
            c.EXCEPTION_TYPE: detail.type_name(error),
        }
        if told.retry_after is not None:
            about[c.RETRY_AFTER] = told.retry_after
        return about


def admit(run: Run) -> None:
    """Count one more model call of the run.

    Raises:
        RunLimitExceededError: it may make no more; reported once for a run.
    """
    limit, calls = run.max_model_calls, run.count_model_call()
    if limit is None or calls <= limit:
        return
    if calls == limit + 1:
        run_events.send(c.RUN_LIMIT_EXCEEDED, {c.LIMIT: limit}, run, events.WARN)
    raise RunLimitExceededError(limit, run.run_id, run.agent)


def policy(
    model: str,
    max_attempts: int = 3,
    transient: Callable[[BaseException], bool] = is_transient,
    on_error: OnModelError | Sequence[OnModelError] = (),
) -> Policy:
    """The policy, checked.

    Raises:
        ValueError: an option that does not fit, said with what to do instead.
    """
    if not isinstance(model, str) or not model:
        raise ValueError("say which model is asked, such as model='gpt-5': metrics count by it")
    if max_attempts < 1:
        raise ValueError(
            f"max_attempts is {max_attempts!r}; the first attempt counts, give 1 or more"
        )
    handlers = (on_error,) if callable(on_error) else tuple(on_error)
    return Policy(model, max_attempts, transient, handlers)
