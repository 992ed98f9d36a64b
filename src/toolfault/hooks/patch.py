"""Adds a hook to every object of a framework's class, for `toolfault.instrument()`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from toolfault.telemetry import report

T = TypeVar("T")

_originals: dict[type[Any], Callable[..., None]] = {}


def after_init(cls: type[T], add: Callable[[T], None]) -> None:
    """Call `add` with every object of the class made from now on; a second time changes nothing."""

    def made(original: Callable[..., None], self: T, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        with _quiet():
            add(self)

    _replace(cls, made)


def with_argument(cls: type[Any], name: str, add: Callable[[Any], Any]) -> None:
    """Give every object made from now on the keyword argument that `add` makes of the given one."""
    with_arguments(cls, lambda given: {name: add(given.get(name))})


def with_arguments(cls: type[Any], add: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Give every object made from now on the keyword arguments that `add` makes of those given."""

    def made(original: Callable[..., None], self: Any, *args: Any, **kwargs: Any) -> None:
        with _quiet():
            kwargs |= add(kwargs)
        original(self, *args, **kwargs)

    _replace(cls, made)


def restore() -> None:
    """Take all of it back."""
    for cls, original in _originals.items():
        setattr(cls, "__init__", original)  # noqa: B010 - said to a type checker it is an error
    _originals.clear()


def _replace(cls: type[Any], made: Callable[..., None]) -> None:
    if cls in _originals:
        return
    original = cls.__init__

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        made(original, self, *args, **kwargs)

    _originals[cls] = original
    setattr(cls, "__init__", init)  # noqa: B010


@contextmanager
def _quiet() -> Iterator[None]:
    try:
        yield
    except Exception:  # noqa: BLE001 - telemetry guard
        report.note_fault()
