"""Every constant of the specification, changed a little: each change must make a check fail."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, NamedTuple

from toolfault.alerts.spec import Spec, seconds

#: Changes without any effect, and why.
WITHOUT_EFFECT = {("alerts", "watchdog", "keep"): "its condition never ends"}


class Mutant(NamedTuple):
    """The specification with one constant changed."""

    path: tuple[str, ...]
    was: Any
    value: Any
    spec: Spec

    def __str__(self) -> str:
        return f"{'.'.join(self.path)}: {self.was!r} -> {self.value!r}"


def mutants(spec: Spec) -> Iterator[Mutant]:
    for path, value in _constants(spec, ()):
        for other in _others(value):
            yield Mutant(path, value, other, _with(spec, path, other))


def _constants(part: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for one in fields(part):
        value = getattr(part, one.name)
        if is_dataclass(value):
            yield from _constants(value, (*path, one.name))
        elif one.name != "places" and (*path, one.name) not in WITHOUT_EFFECT:
            yield (*path, one.name), value


def _with(part: Any, path: tuple[str, ...], value: Any) -> Any:
    first, *rest = path
    below = _with(getattr(part, first), tuple(rest), value) if rest else value
    return replace(part, **{first: below})


def _others(value: Any) -> tuple[Any, ...]:  # noqa: PLR0911 - a case each
    match value:
        case bool():
            return (not value,)
        case int():
            return (value + 1, value - 1)
        case float():
            return (value * 1.5, value / 1.5) if value else (1.0,)
        case tuple():
            return (("pod",),)
        case dict():
            return ({"somebody": "#somebody"},)
        case "critical" | "warning" | "ticket" | "none":
            return ("warning" if value != "warning" else "ticket",)
        case str() if value[:1].isdigit():
            return _durations(value)
        case _:
            return (f"{value}x",)


def _durations(value: str) -> tuple[str, ...]:
    length = seconds(value)
    return (f"{2 * length:.0f}s", f"{length / 2:.0f}s") if length else ("10m",)
