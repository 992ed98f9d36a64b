"""Recording rules: how often something bad usually happens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolfault.alerts.promql import any_of, inside, number, selector
from toolfault.alerts.signals import SIGNAL, last, reach
from toolfault.alerts.spec import seconds, shown

if TYPE_CHECKING:
    from toolfault.alerts.signals import Family, Rule
    from toolfault.alerts.spec import Spec


def baseline(spec: Spec, family: Family) -> list[Rule]:
    """The usual ratio: the higher of the median day and the median of the coming hour of the day."""
    usual = family.usual
    return [
        {"record": f"{family.calls}:day", "expr": f"sum_over_time({family.calls}:bucket[1d])"},
        {"record": f"{family.bad}:day", "expr": f"sum_over_time({family.bad}:bucket[1d])"},
        *(_day(spec, family, signal) for signal in family.signals),
        {"record": f"{usual}:ratio_of_day", "expr": _ratio_of_day(spec, family)},
        {"record": f"{usual}:hour", "expr": _hour(spec, family)},
        {"record": f"{usual}:ratio_of_hour", "expr": _ratio_of_hour(spec, family)},
        {
            "record": f"{usual}:ratio",
            "expr": (
                f"clamp_max((\n  {usual}:ratio_of_hour > {usual}:ratio_of_day\n"
                f"  or {usual}:ratio_of_day\n), {number(spec.baseline.cap)})"
            ),
        },
        *(_usual(spec, family, name) for name in family.watched),
    ]


def _usual(spec: Spec, family: Family, name: str) -> Rule:
    """The highest of all hours that a window lies in: no alert on the tail of a nightly job."""
    window = getattr(spec.windows, name)
    learned = selector(f"{family.usual}:ratio", any_of(SIGNAL, family.watched[name]))
    look = shown(seconds(window) + seconds(spec.baseline.bridge))
    return {
        "record": f"{family.usual}:ratio{window}",
        "expr": f"max_over_time({learned}[{look}])",
    }


def _day(spec: Spec, family: Family, signal: str) -> Rule:
    prior, weight = spec.baseline.prior_ratio, spec.baseline.prior_calls
    bad = selector(f"{family.bad}:day", **{SIGNAL: signal})
    # a subject that never failed has a usual ratio, too
    return {
        "record": f"{family.usual}:day",
        "expr": (
            f"((sum without ({SIGNAL}) ({bad}) or 0 * {family.calls}:day) + {number(prior * weight)})\n"
            f"/ ({family.calls}:day + {number(weight)})"
        ),
        "labels": {SIGNAL: signal},
    }


def _ratio_of_day(spec: Spec, family: Family) -> str:
    """The median of what was learned by the ends of the last days; before the first, what is known."""
    days, known = spec.baseline.days, f"{family.usual}:day"
    return (
        f"quantile_over_time(0.5, {last(spec, known)}[{days}d:1d])\n"
        f"or\n{last(spec, known, spec.baseline.learned)}"
    )


def _hour(spec: Spec, family: Family) -> str:
    """The ratio of the last hour, drawn towards that of the day where there were few calls.

    Left out is what is not far above its day: nearly all, and no job of the hour is among it.
    """
    weight, factor = number(spec.baseline.season_calls), number(spec.baseline.season_factor)
    day, hour = f"{family.usual}:ratio_of_day", reach("1h")
    return (
        f"(sum_over_time({family.bad}:bucket[{hour}]) + {weight} * {day})\n"
        f"/ {family.match}\n(sum_over_time({family.calls}:bucket[{hour}]) + {weight})\n"
        f"> {factor} * {day}"
    )


def _ratio_of_hour(spec: Spec, family: Family) -> str:
    """The median of the coming hour on the days on which it was far above, if there are enough of them."""
    hours = _side_by_side(
        {
            day: last(spec, f"{family.usual}:hour", f"{24 * day - 1}h")
            for day in range(1, spec.baseline.days + 1)
        }
    )
    return (
        f"quantile without (day) (0.5,\n{inside(hours)}\n)\nand\n"
        f"count without (day) (\n{inside(hours)}\n) >= {number(spec.baseline.season_days)}"
    )


def _side_by_side(vectors: dict[int, str]) -> str:
    """Vectors of several days, told apart by a label."""
    return "\nor\n".join(
        f'label_replace({vector}, "day", "{day}", "", "")' for day, vector in vectors.items()
    )
