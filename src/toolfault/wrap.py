"""The loops around a tool's body: sync, async, and streams of both kinds."""

from __future__ import annotations

import asyncio
import functools
import inspect
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar

from toolfault import envelope, joined
from toolfault.call import Call, Decide
from toolfault.error_map import ToolErrorMap
from toolfault.errors import (
    ToolArgumentValidationError,
    ToolError,
    ToolResultError,
    ToolTimedOutError,
)
from toolfault.joined import JoinedCall
from toolfault.run import ToolFailurePolicy, current_run
from toolfault.taxonomy import Outcome
from toolfault.telemetry.declared import Tool

F = TypeVar("F", bound=Callable[..., Any])
OnError = Literal["envelope", "raise"]


class Asked(NamedTuple):
    """A function and what it was called with."""

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """What a guarded function does around its body."""

    tool: Tool
    on_error: OnError
    error_map: ToolErrorMap
    max_attempts: int
    budget_limit: int
    timeout: float | None
    check: Callable[[Any], object] | None
    decide: Decide | None = None

    def call(self) -> Call:
        """A call that has not started, or the one that a framework's hook offers."""
        call: Call | None = joined.offered(self.tool.name)
        if isinstance(call, JoinedCall):
            call.lend(self.tool, self.error_map, self.max_attempts, self.budget_limit)
        else:
            call = Call(
                self.tool,
                self.error_map,
                max_attempts=self.max_attempts,
                budget_limit=self.budget_limit,
            )
        call.decide, call.escalates = self.decide, False
        return call

    def checked(self, result: Any) -> Any:
        """The result, if it may enter the run; else a `ToolResultError` is raised."""
        if self.check is not None:
            try:
                self.check(result)
            except ToolError:
                raise
            except Exception as error:
                raise ToolResultError(self.tool.name) from error
        return result

    def success(self, result: Any) -> Any:
        """What the caller gets of a success."""
        return envelope.success(result) if self.answers() else result

    def failure(self, call: Call) -> Any:
        """What the caller gets: the envelope, or the typed error raised. A refusal is data."""
        error = call.error
        if error is None or error.outcome is Outcome.DECLINED or self.answers(call.escalates):
            return call.answer
        # Without its cause: frameworks copy a traceback's text to spans and to the model.
        raise error from None

    def failed(self, call: Call, error: BaseException, asked: Asked) -> float | None:
        """What `Call.failed` says; arguments that the function does not take ran nothing."""
        if type(error) is TypeError and (rejected := _rejected(self.tool.name, asked)):
            call.never_ran(rejected)
            return None
        return call.failed(error)

    def answers(self, escalates: bool = False) -> bool:
        """Whether the caller gets envelopes; the run's policy wins over `on_error`."""
        run = current_run()
        if run is not None and run.policy is not None:
            return run.policy is ToolFailurePolicy.CONTINUE
        return self.on_error == "envelope" and not escalates


_NAME = re.compile(r"'([^']+)'")


def _rejected(tool: str, asked: Asked) -> ToolArgumentValidationError | None:
    """What is wrong with the arguments; None where the function takes them, so its body raised."""
    try:
        inspect.signature(asked.function).bind(*asked.args, **asked.kwargs)
    except ValueError:  # a function of C that does not say what it takes
        return None
    except TypeError as mismatch:
        named = _NAME.search(str(mismatch))
        field = named[1] if named else None
        problem = "is missing" if "missing" in str(mismatch) else "is not one of this tool"
        message = f"Argument {field} {problem}." if field else "There are too many arguments."
        return ToolArgumentValidationError(tool, field=field, message=message)
    return None


def wrapped(function: F, hook: Hook) -> F:
    """`function` with the hook around it, its name, signature and docstring kept.

    Raises:
        ValueError: a timeout for a function that cannot be stopped.
    """
    wrap: Callable[[F, Hook], F]
    if inspect.isasyncgenfunction(function):
        wrap = _async_generator
    elif inspect.iscoroutinefunction(function):
        wrap = _async
    elif hook.timeout is not None:
        raise ValueError(
            f"timeout={hook.timeout} cannot be kept for {hook.tool.name!r}: a running sync function "
            "cannot be stopped. Make it async, or give its HTTP or database client a timeout"
        )
    elif inspect.isgeneratorfunction(function):
        wrap = _generator
    else:
        wrap = _sync
    return wrap(function, hook)


def _sync(function: Any, hook: Hook) -> Any:
    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        call = hook.call()
        call.start()
        end = call.stop
        try:
            while True:
                call.begin()
                try:
                    result = function(*args, **kwargs)
                    if isinstance(result, Awaitable):
                        end = call.leave
                        return _awaited(result, hook, call)
                    hook.checked(result)
                except BaseException as error:  # noqa: BLE001 - `failed` raises cancellation again
                    if (wait := hook.failed(call, error, Asked(function, args, kwargs))) is None:
                        break
                else:
                    call.succeeded()
                    return hook.success(result)
                time.sleep(wait)
        finally:
            end()
        return hook.failure(call)

    return guarded


async def _awaited(pending: Awaitable[Any], hook: Hook, call: Call) -> Any:
    """The rest of a call whose sync function returned something to await, made once only."""
    call.max_attempts = 1
    call.enter()
    try:
        result = hook.checked(await pending)
        call.succeeded()
    except BaseException as error:  # noqa: BLE001 - `failed` raises cancellation again
        call.failed(error)
    else:
        return hook.success(result)
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
                call.begin()
                try:
                    result = hook.checked(await attempt(*args, **kwargs))
                except BaseException as error:  # noqa: BLE001 - `failed` raises cancellation again
                    if (wait := hook.failed(call, error, Asked(function, args, kwargs))) is None:
                        break
                else:
                    call.succeeded()
                    return hook.success(result)
                await asyncio.sleep(wait)
        finally:
            call.stop()
        return hook.failure(call)

    return guarded


def _generator(function: Any, hook: Hook) -> Any:
    """Items pass as they are; a failure ends the stream with its envelope, or is raised.

    A stream is one attempt: what was yielded cannot be taken back.
    """

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Iterator[Any]:
        call = hook.call()
        call.start()
        call.begin()
        items: Any = None
        try:
            while True:
                try:
                    items = items or function(*args, **kwargs)
                    item = next(items)
                except StopIteration:
                    call.succeeded()
                    return
                except BaseException as error:  # noqa: BLE001 - `failed` raises cancellation again
                    call.max_attempts = 1
                    hook.failed(call, error, Asked(function, args, kwargs))
                    break
                call.leave()
                try:
                    yield item
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


def _async_generator(function: Any, hook: Hook) -> Any:
    """`_generator` for async generators."""

    @functools.wraps(function)
    async def guarded(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        call = hook.call()
        call.start()
        call.begin()
        items: Any = None
        try:
            while True:
                try:
                    items = items or function(*args, **kwargs)
                    async with asyncio.timeout(hook.timeout):
                        item = await anext(items)
                except StopAsyncIteration:
                    call.succeeded()
                    return
                except BaseException as error:  # noqa: BLE001 - `failed` raises cancellation again
                    call.max_attempts = 1
                    hook.failed(call, error, Asked(function, args, kwargs))
                    break
                call.leave()
                try:
                    yield item
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
