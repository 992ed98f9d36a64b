"""Adds a hook to every object of a framework's class, for `toolfault.instrument()`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from toolfault.telemetry import report

T = TypeVar("T")

_originals: dict[type[Any], Callable[..., None]] = {}


def after_init(cls: type[T], add: Callable[[T], None]) -> None:
    """Call `add` with every object of the class made from now on; a second time changes nothing."""
    if cls in _originals:
        return
    original = cls.__init__

    @functools.wraps(original)
    def init(self: T, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        try:
            add(self)
        except Exception:  # noqa: BLE001 - telemetry guard
            report.note_fault()

    _originals[cls] = original
    setattr(cls, "__init__", init)  # noqa: B010 - said to a type checker it is an error


def restore() -> None:
    """Take all of it back."""
    for cls, original in _originals.items():
        setattr(cls, "__init__", original)  # noqa: B010
    _originals.clear()
