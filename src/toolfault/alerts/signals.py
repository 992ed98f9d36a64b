"""Recording rules: how often something bad happened, and how surprising that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolfault import conventions as names
from toolfault.alerts.promql import (
    MODEL,
    PLACE,
    TOOL,
    any_of,
    born,
    inside,
    number,
    replicas_once,
    selector,
    step,
    summed,
    total,
)
from toolfault.alerts.spec import seconds, shown
from toolfault.taxonomy import Code, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolfault.alerts.spec import Spec

Rule = dict[str, Any]
SIGNAL = "signal"
PLACE_BUCKET = f"{'_'.join(PLACE)}:toolfault_calls:bucket"

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
    pace: str = ""  # in the names of what is counted in long stretches
    watched: dict[str, tuple[str, ...]]  # over which of `Windows`: what is compared with its usual

    @property
    def bad(self) -> str:
        """The prefix of what counts bad events."""
        return f"{'_'.join(self.labels)}_{SIGNAL}:toolfault{self.pace}"

    @property
    def calls(self) -> str:
        """The prefix of what counts calls."""
        return f"{'_'.join(self.labels)}:toolfault{self.pace}_calls"

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
        PERMISSION_DENIED: _calls(Code.PERMISSION_DENIED, Outcome.FAILED),
        BUDGET_EXHAUSTED: total(names.BUDGET_EXHAUSTED_TOTAL),
    },
    watched={
        "short": (INTERNAL,),
        "medium": (BUDGET_EXHAUSTED,),
        "long": (INTERNAL, PERMISSION_DENIED),
    },
)
#: What nobody is called for: looked at in stretches of half an hour, which costs a sixth.
TICKETS = Family(
    subject="ticket",
    labels=TOOL,
    calls_metric=TOOLS.calls_metric,
    signals={
        # a policy's or a person's refusal is no identity problem
        REFUSED: _calls(Code.PERMISSION_DENIED, Outcome.REFUSED),
        INVALID_ARGUMENT: _calls(Code.INVALID_ARGUMENT, Outcome.FAILED, Outcome.INVALID),
    },
    pace="_slow",
    watched={"slow": (REFUSED, INVALID_ARGUMENT)},
)
MODELS = Family(
    subject="model",
    labels=MODEL,
    calls_metric=total(names.MODEL_CALLS),
    signals={
        MODEL_ERROR: total(names.MODEL_ERRORS),
        RETRIES_EXHAUSTED: total(names.MODEL_RETRIES_EXHAUSTED),
    },
    watched={"short": (MODEL_ERROR,), "medium": (RETRIES_EXHAUSTED,)},
)


def short_window(spec: Spec, family: Family, name: str, least: float = 1) -> list[Rule]:
    """Counts of a window as scraped. Nothing is recorded of subjects to which too little bad happened."""
    window, (signal,) = getattr(spec.windows, name), family.watched[name]
    bad, calls = f"{family.bad}:increase{window}", f"{family.calls}:increase{window}"
    first = selector(f"{family.bad}:first", **{SIGNAL: signal})
    affected = f"and on ({', '.join(family.labels)}) {bad}"
    by = f"sum by ({', '.join(family.labels)})"
    enough = f">= {number(least)}"
    risen = replicas_once(spec, f"increase({family.signals[signal]}[{window}]) {enough}")
    called = replicas_once(spec, f"increase({family.calls_metric}[{window}]) {affected}")
    return [
        {
            "record": bad,
            "expr": f"{by} (\n{inside(risen)}\n  or\n  {first}\n) {enough}",
            "labels": {SIGNAL: signal},
        },
        {
            "record": calls,
            "expr": f"{by} (\n{inside(called)}\n  or\n  {family.calls}:first {affected}\n)",
        },
        {
            "record": f"{family.bad}:ratio{window}",
            "expr": f"{bad} / {family.match} {calls}",
        },
        *surprises(spec, family, name),
    ]


def first_values(spec: Spec, family: Family, signals: tuple[str, ...]) -> list[Rule]:
    """What `increase()` cannot see: the first values of the series that came in the last stretch."""
    window = spec.baseline.bucket

    def first(series: str) -> str:
        return summed(
            spec, family.labels, born(f"min_over_time({series}[{window}])", series, window)
        )

    return _of_each(family, "first", first, signals)


def risen(spec: Spec, family: Family, name: str) -> Rule:
    """The count without first values, of which it is known only to a stretch when they came.

    They are counted when that stretch ends: one burst would look like two.
    """
    window, (signal,) = getattr(spec.windows, name), family.watched[name]
    counted, first = (
        selector(f"{family.bad}:{what}", **{SIGNAL: signal})
        for what in (f"increase{window}", "first")
    )
    return {
        "record": f"{family.bad}:risen{window}",
        "expr": f"{counted} - ({first} or 0 * {counted})",
    }


def now(spec: Spec, family: Family, series: str) -> str:
    """The present value of what is recorded; of what is recorded seldom the last."""
    return last(spec, series) if family.pace else series


def long_window(family: Family, window: str, signals: tuple[str, ...], floor: float) -> list[Rule]:
    """The same of a longer window, of which the counts of its stretches are read, not every scrape.

    Nothing is recorded of what is not more than a floor of the calls: that is most of what goes wrong.
    """
    bad, calls = f"{family.bad}:increase{window}", f"{family.calls}:increase{window}"
    ratio = f"{family.bad}:ratio{window}"
    stretches = selector(f"{family.bad}:bucket", any_of(SIGNAL, signals))
    counted = f"sum_over_time({stretches}[{reach(window)}])"
    called = f"sum_over_time({family.calls}:bucket[{reach(window)}])"
    return [
        {"record": ratio, "expr": f"{counted} / {family.match} {called} > {number(floor)}"},
        {"record": bad, "expr": f"{counted}\nand {ratio}"},
        {"record": calls, "expr": f"{called}\nand on ({', '.join(family.labels)}) {ratio}"},
    ]


def stretches(spec: Spec, family: Family, name: str) -> Rule:
    """In how many stretches it happened that were not long ago."""
    window = getattr(spec.windows, name)
    within = spec.windows.sustained if name == "long" else window
    bucket = selector(f"{family.bad}:bucket", any_of(SIGNAL, family.watched[name]))
    return {
        "record": f"{family.bad}:stretches{window}",
        "expr": f"count_over_time({bucket}[{reach(within)}])\nand {family.bad}:ratio{window}",
    }


def reach(window: str) -> str:
    """A window without the stretch that ends where it begins."""
    return shown(seconds(window) - 1)


def last(spec: Spec, series: str, offset: str = "") -> str:
    """The last value that was learned by then."""
    look = f"{series}[{shown(seconds(spec.baseline.learned) + 60)}]"
    return f"last_over_time({look} offset {offset})" if offset else f"last_over_time({look})"


def surprises(spec: Spec, family: Family, name: str) -> list[Rule]:
    """How many times the usual the counts of a window are, and how surprising that is.

    Of `k` where `E` was usual, `t = k / E`: the log-likelihood ratio `k ln(k / E) - (k - E)` is
    `k (ln(t) - 1 + 1 / t)`. What is not above the usual is left out before anything is made of it.
    """
    window = getattr(spec.windows, name)
    these = any_of(SIGNAL, family.watched[name])
    ratio = selector(f"{family.bad}:ratio{window}", these)
    usual = last(spec, selector(f"{family.usual}:ratio{window}", these))
    times = f"{family.bad}:times{window}"
    # above the highest that is learned, only what has learned nothing yet is left to the second line
    prior = spec.baseline.prior_ratio
    highest = max(prior, spec.baseline.cap)
    return [
        {
            "record": times,
            "expr": f"{ratio} / {usual} > 1\nor\n({ratio} > {number(highest)}) / {number(prior)}",
        },
        {
            "record": f"{family.bad}:surprise{window}",
            "expr": f"{family.bad}:increase{window} * (ln({times}) - 1 + 1 / {times})",
        },
    ]


def buckets(spec: Spec, family: Family) -> list[Rule]:
    """Counts of stretches that do not overlap, so that their sum is a count."""
    stretch = spec.baseline.learned if family.pace else spec.baseline.bucket

    def counted(series: str) -> str:
        return step(spec, family.labels, series, stretch)

    return _of_each(family, "bucket", counted, tuple(family.signals))


def _of_each(
    family: Family, name: str, count: Callable[[str], str], signals: tuple[str, ...]
) -> list[Rule]:
    """What is counted of the calls, and in the same way of each signal."""
    return [
        {"record": f"{family.calls}:{name}", "expr": count(family.calls_metric)},
        *(
            {
                "record": f"{family.bad}:{name}",
                "expr": count(family.signals[signal]),
                "labels": {SIGNAL: signal},
            }
            for signal in signals
        ),
    ]


def bucket_of_place(family: Family) -> Rule:
    """The calls of all subjects of a place in the last stretch."""
    by, counted = ", ".join(PLACE), f"{family.calls}:bucket"
    return {"record": PLACE_BUCKET, "expr": f"sum by ({by}) ({counted})"}
