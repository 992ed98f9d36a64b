"""Where an alert differs by service, environment or tool."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from toolfault.alerts.conditions import CONDITIONS
from toolfault.alerts.promql import inside, number

if TYPE_CHECKING:
    from toolfault.alerts.conditions import Limit, Where
    from toolfault.alerts.overrides import Change
    from toolfault.alerts.spec import Spec


def changes(spec: Spec, key: str) -> list[tuple[Where, Change]]:
    """Where this alert differs and how, the most specific place first; of equals the last wins."""
    mine = [
        (place.where(), place.alerts[key]) for place in reversed(spec.places) if key in place.alerts
    ]
    return sorted(mine, key=lambda one: -len(one[0]))


def expression(spec: Spec, key: str) -> str:
    """The alert's expression, with the limits of each place, silent where it is switched off."""
    condition = CONDITIONS[key]
    text = condition.expr(spec, _limits(spec, key))
    if condition.of is not None:
        counted = inside(expression(spec, condition.of))
        text = f"count by ({', '.join(condition.labels)}) (\n{counted}\n) {text}"
    if not any("enabled" in change.given() for _, change in changes(spec, key)):
        return text
    on = _by_place(spec, key, "enabled", getattr(spec.alerts, key).enabled)
    return f"(\n{inside(text)}\n)\nand\n{on} == 1"


def fires_somewhere(spec: Spec, key: str) -> bool:
    """Whether the alert, and what it counts, is on everywhere or at least in one place."""
    counted = CONDITIONS[key].of
    if counted is not None and not fires_somewhere(spec, counted):
        return False
    usual: bool = getattr(spec.alerts, key).enabled
    return usual or any(change.enabled for _, change in changes(spec, key))


def lowest(spec: Spec, key: str, name: str) -> float:
    """The limit of the place that is the easiest to convince."""
    given = [change.given() for _, change in changes(spec, key)]
    places = [float(one[name]) for one in given if name in one]
    return min([float(getattr(getattr(spec.alerts, key), name)), *places])


def _limits(spec: Spec, key: str) -> Limit:
    alert = getattr(spec.alerts, key)

    def limit(name: str) -> str:
        usual = getattr(alert, name)
        if not any(name in change.given() for _, change in changes(spec, key)):
            return number(usual)
        return _by_place(spec, key, name, usual)

    return limit


def _by_place(spec: Spec, key: str, name: str, usual: float) -> str:
    """A value for each subject: `or` keeps the left, that of the most specific place."""
    of_places = [
        (where, float(change.given()[name]))
        for where, change in changes(spec, key)
        if name in change.given()
    ]
    vectors = [
        f"0 * {_base(spec, key, where)} + {number(value)}"
        for where, value in [*of_places, ({}, usual)]
    ]
    text = "\nor ".join(vectors)
    return f"(\n{inside(text)}\n)"


def _base(spec: Spec, key: str, where: Where) -> str:
    base = CONDITIONS[key].base
    if base is None:
        raise ValueError(f"{key} is the same everywhere")
    return base(spec, where)


def label(spec: Spec, key: str, name: str) -> str:
    """The severity or owner, as a template where places differ."""
    text, ends = "", ""
    for where, change in changes(spec, key):
        if name in change.given():
            tests = " ".join(
                f"(eq $labels.{one} {json.dumps(value)})" for one, value in where.items()
            )
            text += f"{{{{ if and {tests} }}}}{change.given()[name]}{{{{ else }}}}"
            ends += "{{ end }}"
    usual = getattr(getattr(spec.alerts, key), name)
    # Prometheus shows a template that comes to nothing as the template itself
    return f"{text}{usual or 'unowned'}{ends}" if text else str(usual)
