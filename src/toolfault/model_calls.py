"""Retries around one model call, where nothing but that call is repeated.

answer = await toolfault.retry_model_call(lambda: client.responses.create(...), model="gpt-5")

Repeating a whole run instead would repeat its tools. A stream is repeated until its first item has
reached the caller, and never after: a retry then would say everything twice.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from typing import Any, TypeVar

from toolfault.model_errors import is_transient
from toolfault.model_steps import OK, ModelStep, OnModelError, Policy, policy
from toolfault.model_streams import AsyncModelStream, ModelStream, opened

__all__ = ["OnModelError", "is_transient", "retry_model_call", "retrying"]

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def retry_model_call(call: Callable[[], T], *, model: str, **options: Any) -> T:
    """Make one model call, repeated while it fails transiently.

    Args:
        call: makes the call; it may return an answer, something to await, a stream or an
            asynchronous stream. Give the provider's client `max_retries=0`, so that its own
            retries do not multiply with these and every attempt is counted.
        model: name of the model; metrics count by it.
        **options: those of `retrying`.

    Raises:
        RunLimitExceededError: the run has made its `max_model_calls`.
        Exception: what the last attempt raised, where no `on_error` had an answer.
    """
    return retrying(model, **options)(call)()


def retrying(
    model: str,
    *,
    max_attempts: int = 3,
    transient: Callable[[BaseException], bool] = is_transient,
    on_error: OnModelError | tuple[OnModelError, ...] = (),
) -> Callable[[F], F]:
    """Wrap a function that calls a model: sync, async, or a generator of either kind.

    However many attempts it takes, a call counts as one of the run's `max_model_calls`; attempts
    are counted apart (`run.model_attempts`). Waits are half of an exponential step plus up to as
    much again, at least what the provider asks for, and end with the run's deadline.

    Args:
        model: name of the model; metrics count by it.
        max_attempts: attempts per call, the first included.
        transient: says whether an exception passes by itself.
        on_error: asked in order when the call has failed for good; the first answer that is not
            None is used in place of the model's, in a stream as its last item. None from all of
            them lets the exception go on.

    Raises:
        ValueError: an option that does not fit.
    """
    chosen = policy(model, max_attempts, transient, on_error)

    def decorate(function: F) -> F:
        wrap: Callable[[F, Policy], F] = _wrapper_for(function)
        return wrap(function, chosen)

    return decorate


def _wrapper_for(function: Any) -> Any:
    if inspect.isasyncgenfunction(function):
        return _async_generator
    if inspect.isgeneratorfunction(function):
        return _generator
    return _async if inspect.iscoroutinefunction(function) else _sync


def _sync(function: Any, chosen: Policy) -> Any:
    @functools.wraps(function)
    def asked(*args: Any, **kwargs: Any) -> Any:
        step = ModelStep(chosen)
        attempt = functools.partial(function, *args, **kwargs)
        while True:
            step.began()
            try:
                with step.asking():
                    answer = attempt()
            except BaseException as error:  # noqa: BLE001 - raised again by `instead`
                if (wait := step.failed(error)) is None:
                    return step.instead(error)
                step.sleep(wait)
                continue
            if isinstance(answer, Awaitable):
                return _awaited(step, attempt, answer)
            return _answered(step, attempt, answer)

    return asked


def _async(function: Any, chosen: Policy) -> Any:
    @functools.wraps(function)
    async def asked(*args: Any, **kwargs: Any) -> Any:
        step = ModelStep(chosen)
        attempt = functools.partial(function, *args, **kwargs)
        step.began()
        return await _awaited(step, attempt, attempt())

    return asked


async def _awaited(step: ModelStep, attempt: Callable[[], Any], pending: Awaitable[Any]) -> Any:
    """The answer of an attempt that has begun, or of a later one."""
    while True:
        try:
            with step.asking():
                answer = await pending
            return _answered(step, attempt, answer)
        except BaseException as error:  # noqa: BLE001 - raised again by `instead`
            if (wait := step.failed(error)) is None:
                return step.instead(error)
        await step.pause(wait)
        step.began()
        pending = _made(attempt)


async def _made(attempt: Callable[[], Any]) -> Any:
    return await opened(attempt())  # where it raises at once, it raises as it would later


def _answered(step: ModelStep, attempt: Callable[[], Any], answer: Any) -> Any:
    """The answer; a stream goes on with the step."""
    if isinstance(answer, AsyncIterator):
        return AsyncModelStream(step, attempt, answer)
    if isinstance(answer, Iterator):
        return ModelStream(step, attempt, answer)
    step.ended(OK)
    return answer


def _generator(function: Any, chosen: Policy) -> Any:
    @functools.wraps(function)
    def asked(*args: Any, **kwargs: Any) -> Generator[Any, None, Any]:
        step = ModelStep(chosen)
        attempt = functools.partial(function, *args, **kwargs)
        step.began()
        with ModelStream(step, attempt, attempt()) as stream:
            return (yield from stream)

    return asked


def _async_generator(function: Any, chosen: Policy) -> Any:
    @functools.wraps(function)
    async def asked(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        step = ModelStep(chosen)
        attempt = functools.partial(function, *args, **kwargs)
        step.began()
        async with AsyncModelStream(step, attempt, attempt()) as stream:
            async for item in stream:
                yield item

    return asked
