"""The loops around a tool's body that yields: generators of both kinds."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncGenerator, Generator
from typing import Any

from toolfault.around import Asked, Hook


def generator(function: Any, hook: Hook) -> Any:
    """Items pass as they are; a failure ends the stream with its envelope, or is raised.

    A stream is one attempt: what was yielded cannot be taken back.
    """

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        call = hook.call()
        call.start()
        items: Any = None
        goes_on: Any = None  # the body, with what the consumer has sent or thrown
        try:
            while True:
                try:
                    items = items or function(*args, **kwargs)
                    item = hook.checked(next(items) if goes_on is None else goes_on())
                except StopIteration as end:
                    call.succeeded()
                    return end.value
                except BaseException as error:  # noqa: BLE001 - `failed` raises cancellation again
                    call.max_attempts = 1
                    hook.failed(call, error, Asked(function, args, kwargs))
                    break
                call.leave()
                try:
                    goes_on = functools.partial(items.send, (yield item))
                except Exception as thrown:  # noqa: BLE001 - the body decides what becomes of it
                    goes_on = functools.partial(items.throw, thrown)
                finally:
                    call.enter()
        finally:
            try:
                if items is not None:
                    items.close()
            finally:
                call.stop()
        yield hook.failure(call)

    return guarded


def async_generator(function: Any, hook: Hook) -> Any:
    """`generator` for async generators."""

    @functools.wraps(function)
    async def guarded(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        call = hook.call()
        call.start()
        items: Any = None
        goes_on: Any = None  # the body, with what the consumer has sent or thrown
        try:
            while True:
                try:
                    items = items or function(*args, **kwargs)
                    async with asyncio.timeout(hook.timeout):
                        item = hook.checked(await (anext(items) if goes_on is None else goes_on()))
                except StopAsyncIteration:
                    call.succeeded()
                    return
                except BaseException as error:  # noqa: BLE001 - `failed` raises cancellation again
                    call.max_attempts = 1
                    hook.failed(call, error, Asked(function, args, kwargs))
                    break
                call.leave()
                try:
                    goes_on = functools.partial(items.asend, (yield item))
                except Exception as thrown:  # noqa: BLE001 - the body decides what becomes of it
                    goes_on = functools.partial(items.athrow, thrown)
                finally:
                    call.enter()
        finally:
            try:
                if items is not None:
                    await items.aclose()
            finally:
                call.stop()
        yield hook.failure(call)

    return guarded
