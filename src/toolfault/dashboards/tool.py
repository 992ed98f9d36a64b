"""One tool: rates, latency, attempts, reasons, versions, references."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolfault import conventions as names
from toolfault.alerts.promql import TOOL, total
from toolfault.dashboards import queries as q
from toolfault.dashboards import statements
from toolfault.dashboards.looks import (
    BAD,
    CODES,
    GOOD,
    OUTCOMES,
    PLAIN,
    TIME,
    WARN,
    point_to_errors,
    row_to_card,
    row_to_errors,
)
from toolfault.dashboards.spec import Column, Dashboard, Panel, Prom, Section, Sql

if TYPE_CHECKING:
    from toolfault.alerts.spec import Spec

_CALLS = total(names.TOOL_CALLS)
_EVERY = f"{names.TOOL_CALL_DURATION}_count"
_QUANTILES = {0.5: PLAIN, 0.95: WARN, 0.99: BAD}
_AT = Column(name="at", title="Received", unit=TIME, width=120)
_REPEATED = (
    "A share of the calls is repeated when a dependency fails; each attempt adds to the duration."
)


def tool(spec: Spec) -> Dashboard:
    """All there is to know about one tool, or several."""
    return Dashboard(
        key="tool",
        title="Toolfault: Tool",
        says="One tool, or all that are chosen: how calls end, how long they take, why they fail.",
        variables=q.PLACE_AND_TOOL,
        content=(
            *_stats(spec),
            *_rates(spec),
            Section("Why"),
            _reasons(spec),
            _versions(spec),
            _references(spec),
            Section("How long, how often, and what is not known"),
            *_latency(spec),
            *_attempts(spec),
            _unknown_effects(spec),
        ),
    )


def _stats(spec: Spec) -> tuple[Panel, ...]:
    calls = q.per_second(spec, q.chosen(_CALLS))
    errors = q.per_second(spec, q.chosen(_CALLS, q.ERRORS))
    return (
        Panel(
            kind="stat", title="Calls", unit="reqps", width=6, height=4, limits={0: PLAIN},
            says="Calls a second, however they ended.",
            queries=(Prom(expr=calls),), nothing="No calls yet",
        ),
        Panel(
            kind="stat", title="Errors, share of calls", unit="percentunit", width=6, height=4, decimals=1,
            limits={0: PLAIN},
            says="Calls that failed or timed out.",
            queries=(Prom(expr=q.share(f"({errors} or vector(0))", calls)),),
            nothing="No calls in the last minutes",
            empty="There is no share where nothing is called.",
        ),
        Panel(
            kind="stat", title="95 % are faster than", unit="s", width=6, height=4, limits={0: PLAIN},
            says="The 95th percentile of the duration, attempts and waits together.",
            queries=(Prom(expr=q.quantile(spec, 0.95, names.TOOL_CALL_DURATION)),),
            nothing="No calls in the last minutes",
            empty="Nothing was called in the last minutes.",
        ),
        Panel(
            kind="stat", title="Effect not known, or twice", unit="none", width=6, height=4,
            limits={0: GOOD, 1: WARN},
            says="Calls in the time shown of which nobody knows whether they took effect, or that may have "
            "taken effect twice.",
            queries=(Sql(statements.COUNT_OF_UNKNOWN_EFFECTS),),
            nothing="The database does not answer",
        ),
    )  # fmt: skip


def _rates(spec: Spec) -> tuple[Panel, ...]:
    return (
        Panel(
            kind="timeseries", title="How calls ended", unit="reqps", stacked=True,
            says="Calls a second by outcome.",
            queries=(Prom(expr=q.per_second(spec, q.chosen(_CALLS), "outcome"), legend="{{outcome}}"),),
            colours=OUTCOMES, links=(point_to_errors(spec, "outcome"),),
            nothing="No calls in the time shown",
        ),
        Panel(
            kind="timeseries", title="Errors by code", unit="reqps", stacked=True,
            says="Calls that failed or timed out, by code. A point leads to the calls, an exemplar to one card.",
            queries=(
                Prom(
                    expr=q.per_second(spec, q.chosen(_CALLS, q.ERRORS), *TOOL, "code"),
                    legend="{{code}} {{tool}}",
                    exemplars=True,
                ),
            ),
            colours=CODES, links=(point_to_errors(spec, *TOOL, "code"),),
            nothing="No errors in the time shown",
            empty="The series of a tool begin when it is declared or fails.",
        ),
    )  # fmt: skip


def _reasons(spec: Spec) -> Panel:
    return Panel(
        kind="table", title="Reasons", width=24, height=9, sort="Calls",
        says="Why calls did not end well in the time shown, in the words of the tool's author, and whether they "
        "took effect all the same.",
        queries=(Sql(statements.REASONS),),
        columns=(
            Column(name="outcome", title="Outcome", colours=OUTCOMES, width=90),
            Column(name="code", title="Code", colours=CODES, width=160),
            Column(name="reason", title="Reason", links=(row_to_errors(spec, "tool", "outcome", "code", "reason"),)),
            Column(name="effect", title="Effect", width=80, colours={"unknown": WARN, "applied": BAD}),
            Column(name="calls", title="Calls", unit="none", width=70),
            Column(name="latest", title="Latest", unit=TIME, width=120),
            Column(name="tool", title="Tool"),
            Column(name="service", title="Service"),
        ),
        nothing="Every call in the time shown ended well",
        empty="A tool may have no failure.",
    )  # fmt: skip


def _versions(spec: Spec) -> Panel:
    return Panel(
        kind="table", title="Errors by version of the service", width=24, height=6,
        says="Errors in the time shown by the version they came from, the latest first. A version that has all "
        "of them began them.",
        queries=(Sql(statements.VERSIONS),),
        columns=(
            Column(name="version", title="Version", links=(row_to_errors(spec, "service", "environment"),)),
            Column(name="errors", title="Errors", unit="none", width=70),
            Column(name="internal", title="INTERNAL", unit="none", width=90, limits={0: PLAIN, 1: BAD}),
            Column(name="groups", title="Groups", unit="none", width=70),
            Column(name="first", title="First", unit=TIME, width=120),
            Column(name="latest", title="Latest", unit=TIME, width=120),
            Column(name="service", title="Service"),
        ),
        nothing="No errors in the time shown",
        empty="A tool may have no failure.",
    )  # fmt: skip


def _references(spec: Spec) -> Panel:
    return Panel(
        kind="table", title="Latest references", width=24, height=9,
        says="The newest calls that users may report, each with its card.",
        queries=(Sql(statements.REFERENCES),),
        columns=(
            _AT,
            Column(name="reference", title="Reference", width=130, links=(row_to_card(spec),)),
            Column(name="outcome", title="Outcome", colours=OUTCOMES, width=90),
            Column(name="code", title="Code", colours=CODES, width=160),
            Column(name="reason", title="Reason", width=160),
            Column(name="effect", title="Effect", width=80, colours={"unknown": WARN, "applied": BAD}),
            Column(name="attempts", title="Attempts", unit="none", width=80),
            Column(name="message", title="What the model was told"),
            Column(name="tool", title="Tool", width=140),
            Column(name="version", title="Version", width=80),
        ),
        nothing="Every call in the time shown ended well",
        empty="A tool may have no failure.",
    )  # fmt: skip


def _latency(spec: Spec) -> tuple[Panel, ...]:
    buckets = q.chosen(f"{names.TOOL_CALL_DURATION}_bucket")
    return (
        Panel(
            kind="heatmap", title="How long calls took", unit="s",
            says="Every call by its duration: a second band beside the usual one is a timeout or a retry.",
            queries=(Prom(expr=q.counted(spec, buckets, "le"), legend="{{le}}"),),
            nothing="No calls in the time shown",
        ),
        Panel(
            kind="timeseries", title="Duration: half, 95 %, 99 % are faster than", unit="s",
            says="Percentiles of the duration, attempts and waits together.",
            queries=tuple(
                Prom(expr=q.quantile(spec, of, names.TOOL_CALL_DURATION), legend=f"{of:.0%}", exemplars=True)
                for of in _QUANTILES
            ),
            colours={f"{of:.0%}": colour for of, colour in _QUANTILES.items()},
            nothing="No calls in the time shown",
            empty="Nothing was called in the time shown.",
        ),
    )  # fmt: skip


def _attempts(spec: Spec) -> tuple[Panel, ...]:
    calls = q.per_second(spec, q.chosen(f"{names.TOOL_ATTEMPTS}_count"), *TOOL)
    attempts = q.per_second(spec, q.chosen(f"{names.TOOL_ATTEMPTS}_sum"), *TOOL)
    once = q.per_second(spec, q.chosen(f"{names.TOOL_ATTEMPTS}_bucket", 'le=~"1|1.0"'), *TOOL)
    return (
        Panel(
            kind="timeseries", title="Attempts per call", unit="none", decimals=2,
            says="The mean number of attempts. Below 1: calls that never ran. Above 1: retries.",
            queries=(Prom(expr=q.share(attempts, calls), legend="{{tool}}"),),
            links=(point_to_errors(spec, *TOOL),),
            nothing="No calls in the time shown",
            empty="Nothing was called in the time shown.",
        ),
        Panel(
            kind="timeseries", title="Calls that were repeated, share", unit="percentunit", decimals=1,
            says=_REPEATED,
            queries=(Prom(expr=f"1 - {q.share(once, calls)}", legend="{{tool}}"),),
            links=(point_to_errors(spec, *TOOL),),
            nothing="No calls in the time shown",
            empty="Nothing was called in the time shown.",
        ),
    )  # fmt: skip


def _unknown_effects(spec: Spec) -> Panel:
    return Panel(
        kind="table", title="May have taken effect, or twice", width=24,
        says="Calls whose effect nobody knows, or that may have taken effect twice: somebody should look.",
        queries=(Sql(statements.UNKNOWN_EFFECTS),),
        columns=(
            _AT,
            Column(name="reference", title="Reference", width=130, links=(row_to_card(spec),)),
            Column(name="tool", title="Tool"),
            Column(name="outcome", title="Outcome", colours=OUTCOMES, width=90),
            Column(name="code", title="Code", colours=CODES, width=160),
            Column(name="reason", title="Reason"),
            Column(name="effect", title="Effect", width=80),
            Column(name="possibly_twice", title="Possibly twice", width=110),
            Column(name="attempts", title="Attempts", unit="none", width=80),
            Column(name="service", title="Service"),
        ),
        nothing="Of every call it is known whether it took effect",
        empty="Timeouts of writing tools are rare.",
    )  # fmt: skip
