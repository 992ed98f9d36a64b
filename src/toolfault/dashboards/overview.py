"""Is anything wrong, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolfault import conventions as names
from toolfault.alerts.promql import TOOL, total
from toolfault.alerts.signals import SIGNAL
from toolfault.dashboards import queries as q
from toolfault.dashboards import statements
from toolfault.dashboards.looks import (
    BAD,
    CODES,
    GOOD,
    NONE_IS_GOOD,
    OUTCOMES,
    PLAIN,
    TIME,
    WARN,
    point_to_errors,
    row_to_card,
    row_to_errors,
    row_to_group,
    row_to_tool,
    to_on_call,
)
from toolfault.dashboards.spec import Column, Dashboard, Panel, Prom, Sql

if TYPE_CHECKING:
    from toolfault.alerts.spec import Spec

_CALLS = total(names.TOOL_CALLS)


def overview(spec: Spec) -> Dashboard:
    """The first page to look at."""
    return Dashboard(
        key="overview",
        title="Toolfault: Overview",
        says="Is anything wrong, and where: tools far from their usual level first.",
        variables=q.PLACE_AND_TOOL,
        content=(*stats(spec), where(spec), _by_code(spec), *_outcomes(spec), *_tables(spec)),
    )


def stats(spec: Spec) -> tuple[Panel, ...]:
    """The first line."""
    surprise = q.every_window(spec, "surprise")
    limit = spec.alerts.internal_errors_elevated.nats
    calls = q.chosen(_CALLS)
    return (
        Panel(
            kind="stat", title="Alerts firing", unit="none", width=4, height=4, limits=NONE_IS_GOOD,
            says="Alerts of toolfault that fire now, all services. On-call lists them.",
            queries=(Prom(expr=f"count(ALERTS{{{q.FIRING}}}) or vector(0)"),),
            links=(to_on_call(),),
            nothing="Prometheus does not answer",
        ),
        Panel(
            kind="stat", title="Tools above usual", unit="none", width=4, height=4,
            limits={0: GOOD, 1: WARN, 5: BAD},
            says=f"Tools with a failure signal whose surprise is above {limit:g} nats in the last "
            f"{spec.windows.short}, {spec.windows.medium} or {spec.windows.long}, for tickets {spec.windows.slow}.",
            queries=(
                Prom(expr=f"count(count by ({', '.join(TOOL)}) ((\n{surprise}\n) > {limit:g})) or vector(0)"),
            ),
            nothing="Prometheus does not answer",
        ),
        Panel(
            kind="stat", title="Calls", unit="reqps", width=4, height=4, limits={0: PLAIN},
            says="Tool calls a second, however they ended.",
            queries=(Prom(expr=q.per_second(spec, calls)),),
            nothing="No calls yet",
        ),
        Panel(
            kind="stat", title="Errors, share of calls", unit="percentunit", width=4, height=4, decimals=1,
            limits={0: PLAIN},
            says="Calls that failed or timed out. Declined and refused are answers and do not count; what is "
            "unusual is beside it, for no one level is right for every tool.",
            queries=(
                Prom(expr=q.share(f"({q.per_second(spec, q.chosen(_CALLS, q.ERRORS))} or vector(0))", q.per_second(spec, calls))),
            ),
            nothing="No calls in the last minutes",
            empty="There is no share where nothing is called.",
        ),
        Panel(
            kind="stat", title="New error groups", unit="none", width=4, height=4, limits={0: GOOD, 1: WARN},
            says="Kinds of failure seen for the first time in the time shown.",
            queries=(Sql(statements.COUNT_OF_NEW_GROUPS),),
            nothing="The database does not answer",
        ),
        Panel(
            kind="stat", title="Out of budget", unit="none", width=4, height=4, decimals=0,
            limits={0: GOOD, 1: WARN},
            says="Conversations in which a tool's failure budget ran out in the time shown: their users were "
            "told that it did not work.",
            queries=(Prom(expr=q.counted(spec, q.chosen(total(names.BUDGET_EXHAUSTED_TOTAL)), window="$__range")),),
            nothing="Never happened",
            empty="The series begins with the first declared tool.",
        ),
    )  # fmt: skip


def where(spec: Spec) -> Panel:
    """Tools and signals by distance from the usual."""
    worst = f"topk by ({', '.join([*TOOL, SIGNAL])}) (1,\n{q.every_window(spec, 'surprise')}\n)"

    def of_worst(expression: str) -> str:
        return f"({expression})\nand {worst}"

    nats = {0: PLAIN, spec.alerts.internal_errors_elevated.nats: BAD}
    return Panel(
        kind="table", title="Where: failures by distance from usual", width=16, height=9, sort="Surprise",
        says="Failure signals of tools that are above what is usual for the tool at this hour, in the window in "
        "which that is most surprising (in nats: 3 is chance, above the alerts' limit is not).",
        queries=(
            Prom(expr=worst),
            Prom(expr=of_worst(q.every_window(spec, "times"))),
            Prom(expr=of_worst(q.every_window(spec, "ratio"))),
            Prom(expr=of_worst(q.every_window(spec, "increase"))),
        ),
        columns=(
            Column(name="tool", title="Tool", width=150, links=(row_to_tool(), row_to_errors(spec, *TOOL))),
            Column(name="signal", title="Signal", width=170, colours=CODES),
            Column(name="window", title="In", width=45),
            Column(name="Value #A", title="Surprise", unit="none", width=80, limits=nats),
            Column(name="Value #B", title="× usual", unit="none", width=75),
            Column(name="Value #C", title="Share", unit="percentunit", width=65),
            Column(name="Value #D", title="Calls", unit="none", width=60),
            Column(name="service", title="Service"),
            Column(name="environment", title="Environment", width=110),
        ),
        nothing="No tool is above its usual level (or the rules of alerts/ are not loaded)",
        empty="On a good day every tool is at its usual level.",
    )  # fmt: skip


def _by_code(spec: Spec) -> Panel:
    errors = q.per_second(spec, q.chosen(_CALLS, q.ERRORS), names.LABEL_CODE)
    return Panel(
        kind="timeseries", title="Errors by code, share of calls", unit="percentunit", width=8, height=9,
        says="Calls that failed or timed out, by code, as a share of all calls. INTERNAL is most likely a bug, "
        "UNAVAILABLE a dependency, PERMISSION_DENIED an identity.",
        queries=(
            Prom(
                expr=f"{errors}\n/ on () group_left () ({q.per_second(spec, q.chosen(_CALLS))} > 0)",
                legend="{{code}}",
                exemplars=True,
            ),
        ),
        colours=CODES, links=(point_to_errors(spec, "code"),), stacked=True,
        nothing="No calls in the time shown",
        empty="There is no share where nothing is called.",
    )  # fmt: skip


def _outcomes(spec: Spec) -> tuple[Panel, ...]:
    answers = q.chosen(_CALLS, 'outcome=~"declined|refused|invalid"')
    budget = q.chosen(total(names.BUDGET_EXHAUSTED_TOTAL))
    return (
        Panel(
            kind="timeseries", title="How calls ended", unit="reqps", stacked=True, width=10,
            says="Calls a second by outcome.",
            queries=(
                Prom(expr=q.per_second(spec, q.chosen(_CALLS), "outcome"), legend="{{outcome}}"),
            ),
            colours=OUTCOMES, links=(point_to_errors(spec, "outcome"),),
            nothing="No calls in the time shown",
        ),
        Panel(
            kind="timeseries", title="Declined, refused, invalid", unit="reqps", width=7,
            says="Not errors of a tool: it said no (declined), a policy or a person said no (refused), the "
            "model's arguments did not match (invalid).",
            queries=(Prom(expr=q.per_second(spec, answers, "outcome"), legend="{{outcome}}", exemplars=True),),
            colours=OUTCOMES, links=(point_to_errors(spec, "outcome"),),
            nothing="None in the time shown",
            empty="The series of a tool begin when it is declared or called.",
        ),
        Panel(
            kind="timeseries", title="Out of budget, by tool", unit="none", width=7, decimals=1,
            says="Conversations in which a tool's failure budget ran out, within the windows of the alert "
            f"({spec.windows.medium}).",
            queries=(
                Prom(
                    expr=f"{q.counted(spec, budget, *TOOL, window=spec.windows.medium)} > 0",
                    legend="{{tool}}",
                ),
            ),
            links=(point_to_errors(spec, *TOOL),),
            nothing="No conversation ran out of budget",
            empty="Conversations that run out of budget are rare.",
        ),
    )  # fmt: skip


def _tables(spec: Spec) -> tuple[Panel, ...]:
    place = (
        Column(name="service", title="Service"),
        Column(name="environment", title="Environment", width=110),
    )
    return (
        Panel(
            kind="table", title="New error groups", width=24, height=9,
            says="Kinds of failure (same tool, code, reason, exception and place in the code) seen for the "
            "first time in the time shown, newest first.",
            queries=(Sql(statements.NEW_GROUPS),),
            columns=(
                Column(name="first_seen", title="First seen", unit=TIME, width=120),
                Column(name="code", title="Code", colours=CODES, width=160),
                Column(name="tool", title="Tool", links=(row_to_tool(),)),
                Column(name="cause", title="Exception or reason"),
                Column(name="frame", title="Where in the code", links=(row_to_group(spec),)),
                Column(name="calls", title="Calls", unit="none", width=70),
                Column(name="reference", title="Sample", width=140, links=(row_to_card(spec),)),
                *place,
            ),
            nothing="No new kind of failure in the time shown",
            empty="New kinds of failure are rare.",
        ),
        Panel(
            kind="table", title="Declined and refused, by reason", width=24, height=7,
            says="What tools, policies and people said no to in the time shown.",
            queries=(Sql(statements.ANSWERS_BY_REASON),),
            columns=(
                Column(name="outcome", title="Outcome", colours=OUTCOMES, width=90),
                Column(name="reason", title="Reason", links=(row_to_errors(spec, "outcome", "reason", "tool"),)),
                Column(name="tool", title="Tool", links=(row_to_tool(),)),
                Column(name="calls", title="Calls", unit="none", width=70),
                Column(name="latest", title="Latest", unit=TIME, width=120),
                *place,
            ),
            nothing="Nothing was declined or refused in the time shown",
            empty="A service may have nothing to decline or refuse.",
        ),
    )  # fmt: skip
