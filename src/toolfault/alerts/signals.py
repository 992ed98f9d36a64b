"""Recording rules: how often something bad happened, how often it usually does, how surprising that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolfault import conventions as names
from toolfault.alerts.promql import MODEL, TOOL, inside, number, selector, summed, total
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
    ways = f'outcome="{outcomes[0]}"' if len(outcomes) == 1 else f'outcome=~"{"|".join(outcomes)}"'
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


def windows(spec: Spec, family: Family, window: str, signals: tuple[str, ...]) -> list[Rule]:
    """Counts of a window, and how surprising they are. Nothing is recorded of what did not happen."""
    bad, calls, match = family.bad, family.calls, family.match
    counted = [
        {
            "record": f"{bad}:increase{window}",
            "expr": f"{summed(spec, family.labels, family.signals[signal], window)} > 0",
            "labels": {SIGNAL: signal},
        }
        for signal in signals
    ]
    mine = f"{bad}:increase{window}"
    return [
        {
            "record": f"{calls}:increase{window}",
            "expr": summed(spec, family.labels, family.calls_metric, window),
        },
        *counted,
        {
            "record": f"{bad}:ratio{window}",
            "expr": f"{mine} / {match} ({calls}:increase{window} > 0)",
        },
        {"record": f"{bad}:expected{window}", "expr": _expected(spec, family, window)},
        {
            "record": f"{bad}:surprise{window}",
            "expr": (
                f"{mine} * ln({mine} / {bad}:expected{window})\n"
                f"- ({mine} - {bad}:expected{window})\n"
                f"and {mine} > {bad}:expected{window}"
            ),
        },
    ]


def _expected(spec: Spec, family: Family, window: str) -> str:
    """The usual count.

    Longer windows take the highest usual ratio in them: no alert on the tail of a nightly job.
    """
    look = spec.baseline.bridge if window == spec.windows.short else spec.windows.long
    counted = f"{family.bad}:increase{window}"
    usual = (
        f"max_over_time({family.usual}:ratio[{look}])\n"
        f"or\n0 * {counted} + {number(spec.baseline.prior_ratio)}"
    )
    return f"(\n{inside(usual)}\n)\n* {family.match} {family.calls}:increase{window}\nand {counted}"


def baseline(spec: Spec, family: Family) -> list[Rule]:
    """The usual ratio: the higher of the median day and the median of this hour of the day."""
    return [*_buckets(spec, family), *_sums(spec, family), *_medians(spec, family)]


def _buckets(spec: Spec, family: Family) -> list[Rule]:
    """Counts of windows that do not overlap, so that their sum is a count."""
    bucket = spec.baseline.bucket
    calls = f"{family.calls}:bucket"
    return [
        {"record": calls, "expr": summed(spec, family.labels, family.calls_metric, bucket)},
        *(
            {
                "record": f"{family.bad}:bucket",
                # a tool that never failed has a usual ratio, too
                "expr": f"{summed(spec, family.labels, series, bucket)}\nor\n0 * {calls}",
                "labels": {SIGNAL: signal},
            }
            for signal, series in family.signals.items()
        ),
    ]


def _sums(spec: Spec, family: Family) -> list[Rule]:
    prior, weight = spec.baseline.prior_ratio, spec.baseline.prior_calls
    return [
        {
            "record": f"{family.usual}:day",
            "expr": (
                f"(sum_over_time({family.bad}:bucket[1d]) + {number(prior * weight)})\n"
                f"/ {family.match}\n"
                f"(sum_over_time({family.calls}:bucket[1d]) + {number(weight)})"
            ),
        },
        {"record": f"{family.bad}:hour", "expr": f"sum_over_time({family.bad}:bucket[1h])"},
        {"record": f"{family.calls}:hour", "expr": f"sum_over_time({family.calls}:bucket[1h])"},
    ]


def _medians(spec: Spec, family: Family) -> list[Rule]:
    usual = family.usual
    days = {
        day: f"{usual}:day offset {f'{24 * (day - 1)}h' if day > 1 else ''}{spec.baseline.lag}"
        for day in range(1, spec.baseline.days + 1)
    }
    return [
        {"record": f"{usual}:ratio_of_day", "expr": _median(days)},
        {"record": f"{usual}:ratio_of_hour", "expr": _ratio_of_hour(spec, family)},
        {
            "record": f"{usual}:ratio",
            "expr": (
                f"clamp_max((\n  {usual}:ratio_of_hour > {usual}:ratio_of_day\n"
                f"  or {usual}:ratio_of_day\n), {number(spec.baseline.cap)})"
            ),
        },
    ]


def _ratio_of_hour(spec: Spec, family: Family) -> str:
    """The median of the hour around this time of the day, once there are enough days of it."""
    weight = number(spec.baseline.season_calls)
    offsets = {day: f"{24 * day - 1}h30m" for day in range(1, spec.baseline.days + 1)}
    ratios = {
        day: (
            f"(\n  ({family.bad}:hour offset {offset} + {weight} * {family.usual}:ratio_of_day)\n"
            f"  / {family.match}\n  ({family.calls}:hour offset {offset} + {weight})\n)"
        )
        for day, offset in offsets.items()
    }
    known = _side_by_side(
        {day: f"{family.calls}:hour offset {offset}" for day, offset in offsets.items()}
    )
    return (
        f"{_median(ratios)}\nand on ({', '.join(family.labels)})\n"
        f"count without (day) (\n{inside(known)}\n) >= {number(spec.baseline.season_days)}"
    )


def _median(vectors: dict[int, str]) -> str:
    return f"quantile without (day) (0.5,\n{inside(_side_by_side(vectors))}\n)"


def _side_by_side(vectors: dict[int, str]) -> str:
    """Vectors of several days, told apart by a label."""
    return "\nor\n".join(
        f'label_replace({vector}, "day", "{day}", "", "")' for day, vector in vectors.items()
    )
