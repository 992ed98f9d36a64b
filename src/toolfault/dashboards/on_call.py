"""What fires, what changed, and the alerts' own expressions with their limits drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolfault.alerts import signals
from toolfault.alerts.conditions import CONDITIONS
from toolfault.alerts.places import expression
from toolfault.alerts.promql import TOOL
from toolfault.alerts.spec import Above, alert_name, seconds
from toolfault.dashboards import queries as q
from toolfault.dashboards import statements
from toolfault.dashboards.looks import (
    BAD,
    GOOD,
    PLAIN,
    TIME,
    WARN,
    point_to_errors,
    row_to,
    row_to_card,
    row_to_errors,
    row_to_tool,
)
from toolfault.dashboards.spec import Column, Dashboard, Panel, Prom, Section, Sql

if TYPE_CHECKING:
    from toolfault.alerts.spec import Spec

_SEVERITIES = {"critical": BAD, "warning": WARN, "ticket": PLAIN}
_LEGEND = "{{tool}} · {{service}} · {{environment}}"
_QUIET = "Nothing of this kind in the time shown, or less than any alert is about"
_RARE = "Nothing is recorded of what did not happen, or is too little for an alert."


@dataclass(frozen=True, slots=True)
class _Drawn:
    """An alert whose expression is drawn."""

    key: str
    signal: str
    says: str


DRAWN = (
    _Drawn("internal_error_spike", signals.INTERNAL, "INTERNAL errors: most likely a bug"),
    _Drawn("internal_errors_elevated", signals.INTERNAL, "INTERNAL errors, lasting"),
    _Drawn("credential_rejected", signals.PERMISSION_DENIED, "Most calls denied: a credential"),
    _Drawn("permission_denied", signals.PERMISSION_DENIED, "Calls denied, lasting"),
    _Drawn("budget_exhaustion_rising", signals.BUDGET_EXHAUSTED, "Conversations out of budget"),
)


def on_call(spec: Spec) -> Dashboard:
    """The page an alert leads to."""
    return Dashboard(
        key="on-call",
        title="Toolfault: On-call",
        says="What fires, what changed just before, and how close everything is to its alert.",
        variables=q.PLACE_AND_TOOL,
        content=(
            *_stats(),
            _firing(spec),
            _changes(spec),
            _incidents(spec),
            *(one for drawn in DRAWN for one in _drawn(spec, drawn)),
        ),
    )


def _stats() -> tuple[Panel, ...]:
    firing = tuple(
        Panel(
            kind="stat", title=f"Firing: {severity}", unit="none", width=6, height=4,
            limits={0: GOOD, 1: colour},
            says=f"Alerts of severity {severity} that fire now, all services.",
            queries=(Prom(expr=f'count(ALERTS{{{q.FIRING},severity="{severity}"}}) or vector(0)'),),
            nothing="Prometheus does not answer",
        )
        for severity, colour in _SEVERITIES.items()
    )  # fmt: skip
    versions = Panel(
        kind="stat", title="Versions started", unit="none", width=6, height=4, limits={0: PLAIN},
        says="Versions of services that began to report in the time shown: deployments and roll-backs.",
        queries=(Sql(statements.COUNT_OF_VERSIONS),),
        nothing="The database does not answer",
    )  # fmt: skip
    return (*firing, versions)


def _firing(spec: Spec) -> Panel:
    return Panel(
        kind="table", title="Alerts firing now", width=24, height=6,
        says="All services, not only those chosen: nothing is hidden from whoever is on call.",
        queries=(Prom(expr=f"ALERTS{{{q.FIRING}}}"),),
        columns=(
            Column(name="alertname", title="Alert", width=260),
            Column(name="severity", title="Severity", width=80, colours=_SEVERITIES),
            Column(name="tool", title="Tool", links=(row_to_tool(), row_to_errors(spec, *TOOL))),
            Column(name="service", title="Service", links=(row_to_errors(spec, "service", "environment"),)),
            Column(name="environment", title="Environment", width=110),
        ),
        nothing="Nothing fires",
        empty="On a quiet night nothing fires.",
    )  # fmt: skip


def _changes(spec: Spec) -> Panel:
    return Panel(
        kind="table", title="What changed", width=24, height=8,
        says="Versions that began to report, new, reopened, resolved and muted error groups, tools declared for "
        "the first time: newest first, in the time shown.",
        queries=(Sql(statements.WHAT_CHANGED),),
        columns=(
            Column(name="at", title="At", unit=TIME, width=120),
            Column(name="what", title="What", width=140, colours={"version started": PLAIN}),
            Column(name="service", title="Service", width=140),
            Column(name="tool", title="Tool", width=140),
            Column(name="detail", title="Detail"),
            Column(name="reference", title="Sample", width=140, links=(row_to_card(spec),)),
        ),
        nothing="Nothing changed in the time shown",
        empty="Nothing may have changed.",
    )  # fmt: skip


def _incidents(spec: Spec) -> Panel:
    return Panel(
        kind="table", title="Incidents, with their runbooks", width=24, height=6,
        says="What Alertmanager told the look-up service, so that cards point at it: in the time shown, newest "
        "first.",
        queries=(Sql(statements.INCIDENTS),),
        columns=(
            Column(name="started_at", title="Began", unit=TIME, width=120),
            Column(name="ended_at", title="Ended", unit=TIME, width=120),
            Column(name="severity", title="Severity", width=80, colours=_SEVERITIES),
            Column(name="name", title="Alert", width=260, links=(row_to("Runbook", "runbook"), row_to("Calls", "lookup"))),
            Column(name="summary", title="What it says"),
            Column(name="service", title="Service", width=140, links=(row_to_errors(spec, "service", "environment"),)),
        ),
        nothing="No incidents in the time shown",
        empty="On a quiet night there are none.",
    )  # fmt: skip


def _drawn(spec: Spec, drawn: _Drawn) -> tuple[Panel | Section, ...]:
    name, window = alert_name(drawn.key), _window(spec, drawn.key)
    met = Panel(
        kind="timeline", title=f"{name}: condition met", unit="percentunit", width=24, height=4,
        limits={0: BAD},
        says="The very expression of the alert, for the chosen tools: a bar wherever it has a result. The alert "
        f"fires {_when(getattr(spec.alerts, drawn.key).wait)}.",
        queries=(Prom(expr=q.narrowed(expression(spec, drawn.key)), legend=_LEGEND),),
        links=(point_to_errors(spec, *TOOL),),
        nothing="No tool meets the condition",
        empty="Alerts are rare.",
    )  # fmt: skip
    return (Section(f"{drawn.says} (last {window})"), met, *_parts(spec, drawn, window))


def _when(wait: str) -> str:
    return f"when a bar is longer than {wait}" if seconds(wait) else "where a bar begins"


def _window(spec: Spec, key: str) -> str:
    return str(getattr(spec.windows, CONDITIONS[key].window or "medium"))


def _parts(spec: Spec, drawn: _Drawn, window: str) -> tuple[Panel, ...]:
    """Each part of the expression with its limit: all of them must be above it at once."""
    alert, name = getattr(spec.alerts, drawn.key), alert_name(drawn.key)
    part, counted = (q.recorded(what, window, drawn.signal) for what in ("ratio", "increase"))
    if not isinstance(alert, Above):
        return (
            _part(spec, f"{name}: share of calls", "percentunit", alert.share, part, width=12),
            _part(spec, f"{name}: calls denied", "none", alert.calls, counted, width=12),
        )
    surprise, times = (q.recorded(what, window, drawn.signal) for what in ("surprise", "times"))
    return (
        _part(spec, f"{name}: surprise (nats)", "none", alert.nats, surprise),
        _part(spec, f"{name}: times usual", "none", alert.factor, times),
        _part(spec, f"{name}: share of calls", "percentunit", alert.floor, part),
    )


def _part(spec: Spec, title: str, unit: str, limit: float, expr: str, *, width: int = 8) -> Panel:
    return Panel(
        kind="timeseries", title=title, unit=unit, width=width, height=7, decimals=1,
        limits={0: GOOD, limit: BAD},
        says="A part of the alert's expression; the line is its limit. The alert needs every part above its "
        "limit at once.",
        queries=(Prom(expr=expr, legend=_LEGEND),),
        links=(point_to_errors(spec, *TOOL),),
        nothing=_QUIET,
        empty=_RARE,
    )  # fmt: skip
