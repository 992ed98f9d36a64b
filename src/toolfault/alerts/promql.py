"""The few shapes of PromQL that the rules are made of."""

from __future__ import annotations

from textwrap import indent
from typing import TYPE_CHECKING

from toolfault import conventions as names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolfault.alerts.spec import Spec

PLACE = (names.LABEL_SERVICE, names.LABEL_ENVIRONMENT)
TOOL = (*PLACE, names.LABEL_TOOL)
MODEL = (*PLACE, names.LABEL_MODEL)
AGENT = (*PLACE, names.LABEL_AGENT)


def selector(metric: str, matchers: str = "", **equal: str) -> str:
    """A vector selector."""
    every = [matchers] if matchers else []
    every += [f'{label}="{_quoted(value)}"' for label, value in equal.items()]
    return f"{metric}{{{','.join(every)}}}" if every else metric


def any_of(label: str, values: tuple[str, ...]) -> str:
    """A matcher of one or several values."""
    return f'{label}="{values[0]}"' if len(values) == 1 else f'{label}=~"{"|".join(values)}"'


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def number(value: float) -> str:
    """A number as people write it."""
    return f"{value:.12g}"


def inside(text: str) -> str:
    """A part of an expression, set in."""
    return indent(text.strip(), "  ")


def total(metric: str) -> str:
    """The name under which a counter is exposed."""
    return f"{metric}_total"


def replicas_once(spec: Spec, vector: str) -> str:
    """Every replica shows the same totals: the largest of a series is the series."""
    return f"max without ({', '.join(spec.jobs.replica_labels)}) (\n{inside(vector)}\n)"


def born(value: str, series: str, window: str) -> str:
    """The values of series that came in a window.

    `increase()` cannot see the first value of a series. A series that the last scrape before the
    window did not hold, though it succeeded, was 0 then: all it shows came within the window. Where no
    such scrape is known (a new replica, a gap, a Prometheus just started) nothing is concluded.
    """
    return (
        f"{value} > 0\n"
        f"unless {series} offset {window}\n"
        f"and on (job, instance) up offset {window} == 1"
    )


def rise(series: str, window: str) -> str:
    """What a counter rose by in a window, its first value included."""
    return f"(\n{inside(born(series, series, window))}\n)\nor\nincrease({series}[{window}]) > 0"


def step(spec: Spec, by: tuple[str, ...], series: str, window: str) -> str:
    """What the counters of each subject rose by from edge to edge, over all replicas once.

    `increase()` also misses what a counter rose by between the last scrape of one window and the
    first of the next. Where windows follow one another, nothing may fall between them. Both edges
    are summed, not subtracted: a series that is at one of them only has to be read once, not twice.
    What never happened is left out first: that is most of what can go wrong.
    """
    near, before = f"[{spec.windows.near}]", f"offset {window}"
    now = replicas_once(
        spec,
        f"last_over_time({series}{near}) > 0\n"
        f"and on (job, instance) max_over_time(up{near} {before}) == 1",
    )
    then = replicas_once(spec, f"last_over_time({series}{near} {before}) > 0")
    told_apart = f'label_replace(-{then}, "edge", "before", "", "")'
    return f"sum by ({', '.join(by)}) (\n{inside(now)}\n  or\n{inside(told_apart)}\n) > 0"


def summed(spec: Spec, by: tuple[str, ...], risen: str) -> str:
    """The rises of all series of a subject, over all replicas once."""
    return f"sum by ({', '.join(by)}) (\n{inside(replicas_once(spec, risen))}\n)"


def only(where: Mapping[str, str], metric: str, matchers: str = "") -> str:
    """A selector narrowed to a place."""
    return selector(metric, matchers, **where)
