"""Recording rules: how often something bad happened, how often it usually does, how surprising that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolfault import conventions as names
from toolfault.alerts.promql import (
    MODEL,
    TOOL,
    any_of,
    inside,
    number,
    rise,
    selector,
    step,
    summed,
    total,
)
from toolfault.alerts.spec import seconds, shown
from toolfault.taxonomy import Code, Outcome

if TYPE_CHECKING:
    from toolfault.alerts.spec import Spec

Rule = dict[str, Any]
SIGNAL = "signal"

INTERNAL = Code.INTERNAL.value
PERMISSION_DENIED = Code.PERMISSION_DENIED.value
INVALID_ARGUMENT = Code.INVALID_ARGUMENT.value
REFUSED = "REFUSED"
BUDGET_EXHAUSTED = "BUDGET_EXHAUSTED"
MODEL_ERROR = "MODEL_ERROR"
RETRIES_EXHAUSTED = "RETRIES_EXHAUSTED"


def _calls(code: Code, *outcomes: Outcome) -> str:
    ways = any_of(names.LABEL_OUTCOME, outcomes)
    return selector(total(names.TOOL_CALLS), f'{ways},code="{code}"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Signals counted against one total: of tools, or of models."""

    subject: str
    labels: tuple[str, ...]
    calls_metric: str  # one series per subject
    signals: dict[str, str]  # name: the series that count it

    @property
    def bad(self) -> str:
        """The prefix of what counts bad events."""
        return f"{'_'.join(self.labels)}_{SIGNAL}:toolfault"

    @property
    def calls(self) -> str:
        """The prefix of what counts calls."""
        return f"{'_'.join(self.labels)}:toolfault_calls"

    @property
    def usual(self) -> str:
        """The prefix of what is usual."""
        return f"{self.bad}_baseline"

    @property
    def match(self) -> str:
        """How a signal meets its total."""
        return f"on ({', '.join(self.labels)}) group_left ()"


TOOLS = Family(
    subject="tool",
    labels=TOOL,
    # one series per tool, against one per outcome and code of the calls' own counter
    calls_metric=f"{names.TOOL_CALL_DURATION}_count",
    signals={
        INTERNAL: _calls(Code.INTERNAL, Outcome.FAILED),
        # a policy's or a person's refusal is no identity problem
        PERMISSION_DENIED: _calls(Code.PERMISSION_DENIED, Outcome.FAILED),
        REFUSED: _calls(Code.PERMISSION_DENIED, Outcome.REFUSED),
        INVALID_ARGUMENT: _calls(Code.INVALID_ARGUMENT, Outcome.FAILED, Outcome.INVALID),
        BUDGET_EXHAUSTED: total(names.BUDGET_EXHAUSTED_TOTAL),
    },
)
MODELS = Family(
    subject="model",
    labels=MODEL,
    calls_metric=total(names.MODEL_CALLS),
    signals={
        MODEL_ERROR: total(names.MODEL_ERRORS),
        RETRIES_EXHAUSTED: total(names.MODEL_RETRIES_EXHAUSTED),
    },
)


def short_window(
    spec: Spec, family: Family, window: str, signal: str, least: float = 0
) -> list[Rule]:
    """Counts of a window as scraped. Nothing is recorded of subjects to which too little bad happened."""
    bad, calls = f"{family.bad}:increase{window}", f"{family.calls}:increase{window}"
    affected = f"and on ({', '.join(family.labels)}) {bad}"
    return [
        {
            "record": bad,
            "expr": summed(spec, family.labels, rise(family.signals[signal], window, least)),
            "labels": {SIGNAL: signal},
        },
        {
            "record": calls,
            "expr": summed(
                spec,
                family.labels,
                f"(\n{inside(rise(family.calls_metric, window))}\n)\n{affected}",
            ),
        },
        _ratio(family, window),
        *surprises(spec, family, window, (signal,)),
    ]


def long_window(family: Family, window: str, signals: tuple[str, ...]) -> list[Rule]:
    """The same of a longer window, of which the counts of its stretches are read, not every scrape."""
    stretches = selector(f"{family.bad}:bucket", any_of(SIGNAL, signals))
    bad, calls = f"{family.bad}:increase{window}", f"{family.calls}:increase{window}"
    return [
        {"record": bad, "expr": f"sum_over_time({stretches}[{reach(window)}])"},
        {
            "record": calls,
            "expr": (
                f"sum_over_time({family.calls}:bucket[{reach(window)}])\n"
                f"and on ({', '.join(family.labels)}) {bad}"
            ),
        },
        _ratio(family, window),
    ]


def reach(window: str) -> str:
    """A window without the stretch that ends where it begins."""
    return shown(seconds(window) - 1)


def _ratio(family: Family, window: str) -> Rule:
    return {
        "record": f"{family.bad}:ratio{window}",
        "expr": f"{family.bad}:increase{window} / {family.match} {family.calls}:increase{window}",
    }


def surprises(spec: Spec, family: Family, window: str, signals: tuple[str, ...]) -> list[Rule]:
    """How many times the usual the counts of a window are, and how surprising that is.

    Of `k` where `E` was usual, `t = k / E`: the log-likelihood ratio `k ln(k / E) - (k - E)` is
    `k (ln(t) - 1 + 1 / t)`. What is not above the usual is left out before anything is made of it.
    """
    these = any_of(SIGNAL, signals)
    ratio = selector(f"{family.bad}:ratio{window}", these)
    # the highest of all hours that the window lies in: no alert on the tail of a nightly job
    look = shown(seconds(window) + seconds(spec.baseline.bridge))
    usual = f"max_over_time({selector(f'{family.usual}:ratio', these)}[{look}])"
    times = f"{family.bad}:times{window}"
    return [
        {
            "record": times,
            "expr": (
                f"(\n  {ratio} / {usual}\n"
                f"  or\n  {ratio} / {number(spec.baseline.prior_ratio)}\n) > 1"
            ),
        },
        {
            "record": f"{family.bad}:surprise{window}",
            "expr": f"{family.bad}:increase{window} * (ln({times}) - 1 + 1 / {times})",
        },
    ]


def recent(spec: Spec, family: Family, signal: str, least: float) -> Rule:
    """The count of the last stretch; a series that is not a stretch old yet is left to the next."""
    series, stretch = family.signals[signal], spec.windows.stretch
    apart = f"{series} - {series} offset {stretch} >= {number(least)}"
    return {
        "record": f"{family.bad}:recent",
        "expr": summed(spec, family.labels, apart),
        "labels": {SIGNAL: signal},
    }


def buckets(spec: Spec, family: Family) -> list[Rule]:
    """Counts of stretches that do not overlap, so that their sum is a count."""

    def counted(series: str) -> str:
        return summed(spec, family.labels, step(spec, series, spec.baseline.bucket))

    return [
        {"record": f"{family.calls}:bucket", "expr": counted(family.calls_metric)},
        *(
            {
                "record": f"{family.bad}:bucket",
                "expr": counted(series),
                "labels": {SIGNAL: signal},
            }
            for signal, series in family.signals.items()
        ),
    ]


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
    ]


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
        f"quantile_over_time(0.5, {_last(spec, known)}[{days}d:1d])\n"
        f"or\n{_last(spec, known, spec.baseline.learned)}"
    )


def _hour(spec: Spec, family: Family) -> str:
    """The ratio of the last hour, drawn towards that of the day where there were few calls.

    Left out is what has not been bad for a day: no hour of it is above its day.
    """
    weight, day, hour = (
        number(spec.baseline.season_calls),
        f"{family.usual}:ratio_of_day",
        reach("1h"),
    )
    return (
        f"(\n  (sum_over_time({family.bad}:bucket[{hour}]) or 0 * {family.bad}:day)\n  + {weight} * {day}\n)\n"
        f"/ {family.match}\n(sum_over_time({family.calls}:bucket[{hour}]) + {weight})"
    )


def _ratio_of_hour(spec: Spec, family: Family) -> str:
    """The median of the coming hour on the days before, once there are enough of them."""
    hours = _side_by_side(
        {
            day: _last(spec, f"{family.usual}:hour", f"{24 * day - 1}h")
            for day in range(1, spec.baseline.days + 1)
        }
    )
    return (
        f"quantile without (day) (0.5,\n{inside(hours)}\n)\nand\n"
        f"count without (day) (\n{inside(hours)}\n) >= {number(spec.baseline.season_days)}"
    )


def _last(spec: Spec, series: str, offset: str = "") -> str:
    """The last value that was learned by then."""
    look = f"{series}[{shown(seconds(spec.baseline.learned) + 60)}]"
    return f"last_over_time({look} offset {offset})" if offset else f"last_over_time({look})"


def _side_by_side(vectors: dict[int, str]) -> str:
    """Vectors of several days, told apart by a label."""
    return "\nor\n".join(
        f'label_replace({vector}, "day", "{day}", "", "")' for day, vector in vectors.items()
    )
