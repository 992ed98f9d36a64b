"""Where an alert differs by service, environment or tool."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from toolfault.alerts.conditions import CONDITIONS
from toolfault.alerts.promql import inside, number

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolfault.alerts.conditions import Limit, Where
    from toolfault.alerts.spec import Change, Spec


def changes(spec: Spec, key: str) -> list[tuple[Where, Change]]:
    """Where this alert differs and how, the most specific place first; of equals the last wins."""
    mine = [
        (place.where(), place.alerts[key]) for place in reversed(spec.places) if key in place.alerts
    ]
    return sorted(mine, key=lambda one: -len(one[0]))


def expression(spec: Spec, key: str) -> str:
    """The alert's expression, with the limits of each place, silent where it is switched off."""
    text = CONDITIONS[key].expr(spec, _limits(spec, key))
    off = [
        _base(spec, key, where) for where, change in changes(spec, key) if change.enabled is False
    ]
    return f"(\n{inside(text)}\n)\nunless\n(\n{inside(_or(off))}\n)" if off else text


def _limits(spec: Spec, key: str) -> Limit:
    alert = getattr(spec.alerts, key)

    def limit(name: str) -> str:
        usual = number(getattr(alert, name))
        of_places = [
            f"0 * {_base(spec, key, where)} + {number(float(change.given()[name]))}"
            for where, change in changes(spec, key)
            if name in change.given()
        ]
        if not of_places:
            return usual
        # `or` keeps the left: the limit of the most specific place
        return f"(\n{inside(_or([*of_places, f'0 * {_base(spec, key, {})} + {usual}']))}\n)"

    return limit


def _base(spec: Spec, key: str, where: Where) -> str:
    base = CONDITIONS[key].base
    if base is None:
        raise ValueError(f"{key} is the same everywhere")
    return base(spec, where)


def _or(vectors: Iterable[str]) -> str:
    return "\nor ".join(vectors)


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
