"""Streams of a model: repeated until the first item has reached the caller, never after."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from typing import Any, Self

from toolfault.model_steps import OK, ModelStep


class _Stream:
    """What both kinds share. What the provider's own stream offers besides is reachable through it.

    Args:
        step: the step it belongs to; its first attempt has begun.
        open_again: makes the call again.
        source: the provider's stream of the first attempt.
    """

    def __init__(self, step: ModelStep, open_again: Callable[[], Any], source: Any) -> None:
        self._step = step
        self._open_again = open_again
        self._source: Any = source  # None: it broke, and is opened again with the next attempt
        self._over = False
        self._returned: Any = None  # by a generator

    def __del__(self) -> None:
        self._left()  # by a reader who has closed nothing

    def _left(self) -> None:
        """Nobody reads it any more; nothing where it has ended before."""
        self._step.ended(OK if self._step.emitted else None)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._source, name)

    def _fail(self, error: BaseException) -> float | None:
        """Seconds until the stream is opened again; None when it is over."""
        self._source = None
        wait = self._step.failed(error)
        self._over = wait is None
        return wait


class ModelStream(_Stream, Iterator[Any]):
    """A stream of a model."""

    def __next__(self) -> Any:
        while not self._over:
            try:
                with self._step.asking():
                    if self._source is None:
                        self._step.began()
                        self._source = self._open_again()
                    item = next(self._source)
            except StopIteration as end:
                self._over, self._returned = True, end.value
                self._step.ended(OK)
            except BaseException as error:  # noqa: BLE001 - raised again by `instead`
                _close(self._source)
                if (wait := self._fail(error)) is None:
                    return self._step.instead(error)
                self._step.sleep(wait)
            else:
                self._step.emitted = True
                return item
        raise StopIteration(self._returned)

    def close(self) -> None:
        """End it before its end; the provider's stream is closed too."""
        self._over = True
        _close(self._source)
        self._left()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncModelStream(_Stream, AsyncIterator[Any]):
    """A stream of a model, asynchronous."""

    async def __anext__(self) -> Any:
        while not self._over:
            try:
                with self._step.asking():
                    if self._source is None:
                        self._step.began()
                        self._source = await opened(self._open_again())
                    item = await anext(self._source)
            except StopAsyncIteration:
                self._over = True
                self._step.ended(OK)
            except BaseException as error:  # noqa: BLE001 - raised again by `instead`
                await _aclose(self._source)
                if (wait := self._fail(error)) is None:
                    return self._step.instead(error)
                await self._step.pause(wait)
            else:
                self._step.emitted = True
                return item
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """End it before its end; the provider's stream is closed too."""
        self._over = True
        await _aclose(self._source)
        self._left()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _close(source: Any) -> None:
    with suppress(Exception):  # a broken stream may not close either
        if callable(close := getattr(source, "close", None)):
            close()


async def _aclose(source: Any) -> None:
    with suppress(Exception):
        for name in ("aclose", "close"):
            if callable(close := getattr(source, name, None)):
                await opened(close())
                return


async def opened(result: Any) -> Any:
    """What a call gave, awaited where it is to be awaited."""
    return await result if inspect.isawaitable(result) else result
