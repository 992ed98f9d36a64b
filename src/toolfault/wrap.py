"""The loops around a tool's body: sync and async; those of streams are in `streams`."""

from __future__ import annotations

import asyncio
import functools
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from toolfault import streams
from toolfault.around import Asked, Hook
from toolfault.call import Call
from toolfault.errors import ToolTimedOutError

F = TypeVar("F", bound=Callable[..., Any])


def wrapped(function: F, hook: Hook) -> F:
    """`function` with the hook around it, its name, signature and docstring kept.

    Raises:
        ValueError: a timeout for a function that cannot be stopped.
    """
    wrap: Callable[[F, Hook], F]
    if inspect.isasyncgenfunction(function):
        wrap = streams.async_generator
    elif inspect.iscoroutinefunction(function):
        wrap = _async
    elif hook.timeout is not None:
        raise ValueError(
            f"timeout={hook.timeout} cannot be kept for {hook.tool.name!r}: a running sync function "
            "cannot be stopped. Make it async, or give its HTTP or database client a timeout"
        )
    elif inspect.isgeneratorfunction(function):
        wrap = streams.generator
    else:
        wrap = _sync
    return wrap(function, hook)


#: What most tools return: to ask an abstract class of it takes a tenth of the call.
_PLAIN = frozenset({str, dict, list, int, float, bool, type(None)})


def _sync(function: Any, hook: Hook) -> Any:
    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        call = hook.call()
        call.start()
        end = call.stop
        try:
            while True:
                try:
                    result = function(*args, **kwargs)
                    if type(result) not in _PLAIN and isinstance(result, Awaitable):
                        end = call.leave
                        return _awaited(result, hook, call, Asked(function, args, kwargs))
                    if hook.check is not None:
                        hook.checked(result)
                except BaseException as error:  # noqa: BLE001 - `failed` raises cancellation again
                    if (wait := hook.failed(call, error, Asked(function, args, kwargs))) is None:
                        break
                else:
                    call.succeeded()
                    return hook.success(call, result)
                time.sleep(wait)
                call.begin()
        finally:
            end()
        return hook.failure(call)

    return guarded


async def _awaited(pending: Awaitable[Any], hook: Hook, call: Call, asked: Asked) -> Any:
    """The rest of a call whose sync function returned something to await, made once only."""
    call.max_attempts = 1
    call.enter()
    try:
        result = hook.checked(await pending)
        call.succeeded()
    except BaseException as error:  # noqa: BLE001 - `failed` raises cancellation again
        hook.failed(call, error, asked)
    else:
        return hook.success(call, result)
    finally:
        call.stop()
    return hook.failure(call)


def _async(function: Any, hook: Hook) -> Any:
    async def attempt(*args: Any, **kwargs: Any) -> Any:
        if hook.timeout is None:
            return await function(*args, **kwargs)
        try:
            async with asyncio.timeout(hook.timeout) as scope:
                return await function(*args, **kwargs)
        except TimeoutError as error:
            if not scope.expired():
                raise
            raise ToolTimedOutError(hook.tool.name) from error

    @functools.wraps(function)
    async def guarded(*args: Any, **kwargs: Any) -> Any:
        call = hook.call()
        call.start()
        try:
            while True:
                try:
                    result = hook.checked(await attempt(*args, **kwargs))
                except BaseException as error:  # noqa: BLE001 - `failed` raises cancellation again
                    if (wait := hook.failed(call, error, Asked(function, args, kwargs))) is None:
                        break
                else:
                    call.succeeded()
                    return hook.success(call, result)
                await asyncio.sleep(wait)
                call.begin()
        finally:
            call.stop()
        return hook.failure(call)

    return guarded
