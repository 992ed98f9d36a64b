"""When each alert fires: one PromQL expression each."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from toolfault import conventions as names
from toolfault.alerts import signals
from toolfault.alerts.promql import (
    AGENT,
    PLACE,
    TOOL,
    inside,
    replicas_once,
    rise,
    selector,
    summed,
    total,
)
from toolfault.alerts.signals import MODELS, PLACE_BUCKET, SIGNAL, TICKETS, TOOLS, now, reach
from toolfault.alerts.spec import seconds, shown
from toolfault.taxonomy import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolfault.alerts.signals import Family
    from toolfault.alerts.spec import Spec

    Limit = Callable[[str], str]
    Where = Mapping[str, str]

CODE, OUTCOME = names.LABEL_CODE, names.LABEL_OUTCOME
#: Answers with which ingestion turns a request away: for its token, or for now.
TURNED_AWAY = (
    'status=~"401|403|429|503|PERMISSION_DENIED|RESOURCE_EXHAUSTED|UNAUTHENTICATED|UNAVAILABLE"'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """An alert's expression, and what its results are told apart by."""

    expr: Callable[[Spec, Limit], str]
    #: A vector with the labels of the results, of one place; without it places cannot differ.
    base: Callable[[Spec, Where], str] | None = None
    labels: tuple[str, ...] = ()
    fixed: Mapping[str, str] = field(default_factory=dict)  # what cards and lists are matched by
    window: str | None = None  # of `Windows`
    #: The alert whose results are counted; `expr` then says only how many are too many.
    of: str | None = None


def _of_signal(family: Family, signal: str, window: str, fixed: Where | None = None) -> Condition:
    """Far above the usual level of a signal; over the long windows, in several stretches of them."""

    def expr(spec: Spec, limit: Limit) -> str:
        length = getattr(spec.windows, window)
        text = _above(spec, family, signal, length, limit)
        if window in ("long", "slow"):
            stretches = selector(f"{family.bad}:stretches{length}", **{SIGNAL: signal})
            text += f"\nand {now(spec, family, stretches)} >= {limit('buckets')}"
        return text

    def base(spec: Spec, where: Where) -> str:
        return now(spec, family, _counted(family, signal, getattr(spec.windows, window), where))

    return Condition(expr=expr, base=base, labels=family.labels, fixed=fixed or {}, window=window)


def _above(spec: Spec, family: Family, signal: str, window: str, limit: Limit) -> str:
    """Enough of the calls to matter, surprising, and a multiple of the usual."""
    ratio, surprise, times = (
        now(spec, family, selector(f"{family.bad}:{what}{window}", **{SIGNAL: signal}))
        for what in ("ratio", "surprise", "times")
    )
    return (
        f"{ratio} > {limit('floor')}\n"
        f"and {surprise} > {limit('nats')}\n"
        f"and {times} > {limit('factor')}"
    )


def _spike(spec: Spec, limit: Limit) -> str:
    """Above the usual level, and either it goes on or it is more than two conversations could make."""
    short, apart = spec.windows.short, limit("apart")
    risen = selector(f"{TOOLS.bad}:risen{short}", **{SIGNAL: signals.INTERNAL})
    before = f"{risen} offset {spec.windows.stretch}"
    earlier = f"{risen} offset {shown(2 * seconds(spec.windows.stretch))}"
    # of the counts that are at hand: to read the counters of each stretch costs as much as all else
    goes_on = (
        f"{_counted(TOOLS, signals.INTERNAL, short)} >= {limit('burst')}\n"
        f"or\n{risen} - {before} >= {apart}\n"
        f"and {before} - ({earlier} or 0 * {before}) >= {apart}\n"
        f"or\n{risen} >= 2 * {apart}\nand {risen} offset {short} >= 2 * {apart}"
    )
    above = _above(spec, TOOLS, signals.INTERNAL, short, limit)
    return f"{above}\nand (\n{inside(goes_on)}\n)"


def _counted(family: Family, signal: str, window: str, where: Where | None = None) -> str:
    return selector(f"{family.bad}:increase{window}", **{SIGNAL: signal, **(where or {})})


def _of_service(spec: Spec, where: Where) -> str:
    counted = _counted(TOOLS, signals.INTERNAL, spec.windows.short, where)
    return f"count by ({', '.join(PLACE)}) ({counted})"


def _rejected(spec: Spec, limit: Limit) -> str:
    medium, signal = spec.windows.medium, signals.PERMISSION_DENIED
    ratio, increase = (
        selector(f"{TOOLS.bad}:{what}{medium}", **{SIGNAL: signal})
        for what in ("ratio", "increase")
    )
    bucket = selector(f"{TOOLS.bad}:bucket", **{SIGNAL: signal})
    return (
        f"{ratio} > {limit('share')}\n"
        f"and {increase} >= {limit('calls')}\n"
        f"and count_over_time({bucket}[{reach(medium)}]) >= {limit('buckets')}\n"
        f"or\n{bucket} / {TOOLS.match} {TOOLS.calls}:bucket > {limit('share')}\n"
        f"and {bucket} >= {limit('burst')}"
    )


def _of_counter(
    metric: str, by: tuple[str, ...], matchers: Where | None = None, fixed: Where | None = None
) -> Condition:
    """A counter that should stand still."""

    def expr(spec: Spec, limit: Limit) -> str:
        series = selector(total(metric), **(matchers or {}))
        return f"{summed(spec, by, rise(series, spec.windows.medium))} > {limit('more_than')}"

    def base(_: Spec, where: Where) -> str:
        return (
            f"sum by ({', '.join(by)}) ({selector(total(metric), **{**(matchers or {}), **where})})"
        )

    return Condition(expr=expr, base=base, labels=by, fixed=fixed or {}, window="medium")


def _waiting(spec: Spec, limit: Limit) -> str:
    once = replicas_once(spec, names.DEAD_LETTERS_WAITING)
    return f"sum by ({', '.join(TOOL)}) (\n{inside(once)}\n) > {limit('more_than')}"


def _waiting_at(_: Spec, where: Where) -> str:
    return f"sum by ({', '.join(TOOL)}) ({selector(names.DEAD_LETTERS_WAITING, **where)})"


def _jobs(spec: Spec) -> str:
    jobs = spec.jobs
    return selector("up", f'job=~"{jobs.service}|{jobs.tools}|{jobs.collector}"')


def _none_up(spec: Spec) -> str:
    return f"absent({selector('up', job=spec.jobs.tools)} == 1)"


def _silent(spec: Spec, limit: Limit) -> str:
    return (
        f"{PLACE_BUCKET} offset 1d > {limit('more_than')}\n"
        f"and {PLACE_BUCKET} offset 1w > {limit('more_than')}\n"
        f"unless sum_over_time({PLACE_BUCKET}[{reach(spec.windows.medium)}]) > 0\n"
        f"unless on () {_none_up(spec)}"
    )


def _silent_at(_: Spec, where: Where) -> str:
    return f"sum by ({', '.join(PLACE)}) ({selector(PLACE_BUCKET, **where)} offset 1d)"


def _refusing(spec: Spec, limit: Limit) -> str:
    """Records that can never be stored, and requests turned away; each replica has its own."""
    window = spec.windows.medium
    never = f"increase({total(names.INGEST_REFUSED)}[{window}])"
    away = f"increase({selector(total(names.INGEST_REQUESTS), TURNED_AWAY)}[{window}])"
    return f"sum by (job, instance) (\n  {never}\n  or\n  {away}\n) > {limit('more_than')}"


def _own(metric: str) -> Condition:
    """A counter of each replica that should stand still."""

    def expr(spec: Spec, limit: Limit) -> str:
        return f"increase({total(metric)}[{spec.windows.medium}]) > {limit('more_than')}"

    return Condition(expr=expr, labels=("job", "instance"), window="medium")


def _partitions(spec: Spec, limit: Limit) -> str:
    return f"min by (job) ({selector(names.PARTITIONS_AHEAD, job=spec.jobs.service)}) < {limit('least')}"


def _rules_failing(spec: Spec, limit: Limit) -> str:
    failures = 'prometheus_rule_evaluation_failures_total{rule_group=~".*toolfault-.*"}'
    return f"increase({failures}[{spec.windows.medium}]) > {limit('more_than')}"


_FAILED = {OUTCOME: Outcome.FAILED.value}
_INTERNAL = {CODE: signals.INTERNAL}
_DENIED = {CODE: signals.PERMISSION_DENIED, **_FAILED}

#: By the alert's field in `spec.Alerts`.
CONDITIONS: dict[str, Condition] = {
    "internal_error_spike": replace(
        _of_signal(TOOLS, signals.INTERNAL, "short", _INTERNAL), expr=_spike
    ),
    "internal_errors_elevated": _of_signal(TOOLS, signals.INTERNAL, "long", _INTERNAL),
    "many_tools_failing": Condition(
        expr=lambda _, limit: f">= {limit('tools')}",
        base=_of_service,
        labels=PLACE,
        fixed=_INTERNAL,
        window="short",
        of="internal_error_spike",
    ),
    "credential_rejected": Condition(
        expr=_rejected,
        base=lambda spec, where: _counted(
            TOOLS, signals.PERMISSION_DENIED, spec.windows.medium, where
        ),
        labels=TOOL,
        fixed=_DENIED,
        window="medium",
    ),
    "permission_denied": _of_signal(TOOLS, signals.PERMISSION_DENIED, "long", _DENIED),
    "policy_refusals_elevated": _of_signal(
        TICKETS, signals.REFUSED, "slow", {OUTCOME: Outcome.REFUSED.value}
    ),
    "invalid_arguments_elevated": _of_signal(
        TICKETS, signals.INVALID_ARGUMENT, "slow", {CODE: signals.INVALID_ARGUMENT}
    ),
    "budget_exhaustion_rising": _of_signal(TOOLS, signals.BUDGET_EXHAUSTED, "medium"),
    "model_error_spike": _of_signal(MODELS, signals.MODEL_ERROR, "short"),
    "model_retries_exhausted": _of_signal(MODELS, signals.RETRIES_EXHAUSTED, "medium"),
    "unguarded_error": _of_counter(names.GENERIC_ERROR_TOTAL, TOOL),
    "backstop_reached": _of_counter(names.BACKSTOP_REACHED_TOTAL, TOOL, fixed=_INTERNAL),
    "unregistered_tool_called": _of_counter(names.UNREGISTERED_TOOL_CALLS, PLACE),
    "run_limit_exceeded": _of_counter(names.RUN_LIMIT_EXCEEDED_TOTAL, AGENT),
    "new_internal_error_group": _of_counter(
        names.ERROR_GROUPS_NEW, TOOL, matchers=_INTERNAL, fixed=_INTERNAL
    ),
    "dead_letters_waiting": Condition(expr=_waiting, base=_waiting_at, labels=TOOL),
    "target_down": Condition(
        expr=lambda spec, _: f"{_jobs(spec)} == 0", labels=("job", "instance")
    ),
    "telemetry_absent": Condition(expr=lambda spec, _: _none_up(spec)),
    "telemetry_silent": Condition(expr=_silent, base=_silent_at, labels=PLACE, window="medium"),
    "telemetry_dropped": _of_counter(names.TELEMETRY_DROPPED_TOTAL, PLACE),
    "late_telemetry": _of_counter(names.LATE_CALLS, PLACE),
    "ingestion_refusing": Condition(expr=_refusing, labels=("job", "instance"), window="medium"),
    "partitions_not_ahead": Condition(expr=_partitions, labels=("job",)),
    "scrubber_faults": _own(names.INGEST_SCRUB_FAULTS),
    "rules_failing": Condition(expr=_rules_failing, labels=("rule_group",), window="medium"),
    "watchdog": Condition(expr=lambda *_: "vector(1)"),
}
