"""What keeps a hook from disturbing the agent: its faults are counted, its memory is bounded."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, ParamSpec, TypeVar

from toolfault.telemetry import report

P = ParamSpec("P")
R = TypeVar("R")

_KEPT = 10_000  # open calls: what a framework never finishes must not pile up


def never_raises(function: Callable[P, R]) -> Callable[P, R | None]:
    """Count a fault of the hook instead of raising it: the agent goes on as if we were not there."""

    @functools.wraps(function)
    def quiet(*args: P.args, **kwargs: P.kwargs) -> R | None:
        try:
            return function(*args, **kwargs)
        except Exception:  # noqa: BLE001 - telemetry guard
            report.note_fault()
            return None

    return quiet


def keep(kept: OrderedDict[Any, Any], key: Any, value: Any, *, most: int = _KEPT) -> None:
    """Remember the newest of them."""
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > most:
        kept.popitem(last=False)


async def quietly(asked: Awaitable[R]) -> R | None:
    """What the framework answers to a question of ours; None where asking it failed."""
    try:
        return await asked
    except Exception:  # noqa: BLE001 - telemetry guard
        report.note_fault()
        return None
