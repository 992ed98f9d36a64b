"""The words of alerts and runbooks, and the marks in them that are filled in.

A mark is a name in angle brackets: a label, a number of the alert, a window or a limit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from toolfault.alerts.promql import selector
from toolfault.alerts.signals import SIGNAL, last, now
from toolfault.alerts.spec import seconds

if TYPE_CHECKING:
    from toolfault.alerts.signals import Family
    from toolfault.alerts.spec import Alert, Spec

_MARK = re.compile(r"<([a-z_]+%?)>")
_LABELS = ("service", "environment", "tool", "model", "agent", "instance", "job", "rule_group")
OPEN_LIST = (
    "Open `lookup_url`: the newest failed calls. Take one reference and read its card, then its "
    "exception detail."
)
_UNITS = (
    (86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute"), (1000, "second"), (1, "millisecond"),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What is said about one alert, in the alert and in its runbook."""

    summary: str
    description: str
    meaning: str
    checks: tuple[str, str, str]
    causes: tuple[str, ...]
    over: str
    dashboard: str = "tool"
    #: Filters of the list of errors beyond the labels of the alert.
    look_up: tuple[tuple[str, str], ...] = ()
    #: Whose numbers the description quotes: a family, a signal and one of `Windows`.
    quotes: tuple[Family, str, str] | None = field(default=None)


def spoken(duration: str) -> str:
    """A duration as people say it."""
    length = round(1000 * seconds(duration))
    size, unit = next(
        (size, unit) for size, unit in _UNITS if length >= size and length % size == 0
    )
    amount = length // size
    return f"{amount} {unit}{'s' if amount != 1 else ''}"


def fill(text: str, spec: Spec, alert: Alert, words: Words) -> str:
    """The text with every mark filled in.

    Raises:
        KeyError: a mark is none of ours.
    """
    marks = {**_of_spec(spec), **_of_limits(alert), **_of_labels(), **_quoted(spec, words)}
    return _MARK.sub(lambda mark: marks[mark[1]], text)


def _of_spec(spec: Spec) -> dict[str, str]:
    return {
        "short": spoken(spec.windows.short),
        "stretch": spoken(spec.windows.stretch),
        "sustained": spoken(spec.windows.sustained),
        "medium": spoken(spec.windows.medium),
        "long": spoken(spec.windows.long),
        "slow": spoken(spec.windows.slow),
        "bucket": spoken(spec.baseline.bucket),
        "slow_stretch": spoken(spec.baseline.learned),
        "tools_job": spec.jobs.tools,
        "value": '{{ $value | printf "%.0f" }}',
        "value%": "{{ $value | humanizePercentage }}",
    }


def _of_limits(alert: Alert) -> dict[str, str]:
    marks = {}
    for one in fields(alert):
        value = getattr(alert, one.name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            marks[one.name] = f"{value:g}"
            marks[f"{one.name}%"] = _percent(value)
            marks[f"twice_{one.name}"] = f"{2 * value:g}"
    return {**marks, "wait": spoken(alert.wait) if seconds(alert.wait) else "0 seconds"}


def _percent(share: float) -> str:
    return f"{100 * share:g} %"


def _of_labels() -> dict[str, str]:
    return {label: f"{{{{ $labels.{label} }}}}" for label in _LABELS}


def _quoted(spec: Spec, words: Words) -> dict[str, str]:
    """Numbers that are not the alert's value are asked for when it fires."""
    if words.quotes is None:
        return {}
    family, signal, name = words.quotes
    window = getattr(spec.windows, name)
    every, of_signal = _of_subject(family), {SIGNAL: signal}
    count = now(spec, family, selector(f"{family.bad}:increase{window}", every, **of_signal))
    calls = now(spec, family, selector(f"{family.calls}:increase{window}", every))
    usual = last(spec, selector(f"{family.usual}:ratio{window}", every, **of_signal))
    assumed = f"not known yet, {_percent(spec.baseline.prior_ratio)} is assumed"
    return {
        "count": _asked(family, count, 'printf "%.0f"'),
        "calls_made": _asked(family, calls, 'printf "%.0f"'),
        "usual%": _asked(family, usual, "humanizePercentage", assumed),
    }


def _of_subject(family: Family) -> str:
    return ",".join(f"{label}=%q" for label in family.labels)


def _asked(family: Family, vector: str, shown: str, otherwise: str = "unknown") -> str:
    values = " ".join(f"$labels.{label}" for label in family.labels)
    # single quotes in the selector: the text stands in double quotes
    asked = f'printf "{vector.replace(chr(34), chr(39))}" {values} | query'
    value = f"{{{{ . | first | value | {shown} }}}}"
    return f"{{{{ with {asked} }}}}{value}{{{{ else }}}}{otherwise}{{{{ end }}}}"
