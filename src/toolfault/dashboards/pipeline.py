"""Does telemetry arrive, is it stored, is there room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolfault import conventions as names
from toolfault.alerts.conditions import TURNED_AWAY
from toolfault.alerts.promql import selector, total
from toolfault.dashboards import queries as q
from toolfault.dashboards import statements
from toolfault.dashboards.looks import BAD, GOOD, PLAIN, TIME, WARN
from toolfault.dashboards.spec import Column, Dashboard, Panel, Prom, Section, Sql, Variable

if TYPE_CHECKING:
    from toolfault.alerts.spec import Spec

_CHOSEN = 'instance=~"$instance"'


def pipeline(spec: Spec) -> Dashboard:
    """Pipeline health."""
    up = selector("up", job=spec.jobs.service)
    replica = Variable(name="instance", title="Replica", query=f"label_values({up}, instance)")
    return Dashboard(
        key="pipeline",
        title="Toolfault: Pipeline health",
        says="Whether telemetry arrives and is stored. Wrong here means: the other dashboards may be wrong.",
        variables=(q.ENVIRONMENT, q.SERVICE, replica),
        content=(
            *_stats(spec),
            *_flow(),
            Section("What was not stored, and why"),
            *_losses(spec),
            Section("Senders and room"),
            *_room(spec),
        ),
    )


def _own(metric: str, *matchers: str) -> str:
    return selector(metric, ",".join([_CHOSEN, *matchers]))


def _rate(metric: str, *by: str) -> str:
    return f"sum by ({', '.join(by)}) (rate({_own(total(metric))}[$__rate_interval]))"


def _stats(spec: Spec) -> tuple[Panel, ...]:
    jobs = selector("up", f'job=~"{spec.jobs.service}|{spec.jobs.tools}"')
    refused = f"sum(increase({_own(total(names.INGEST_REFUSED))}[$__range]))"
    turned = f"sum(increase({_own(total(names.INGEST_REQUESTS), TURNED_AWAY)}[$__range]))"
    least = spec.alerts.partitions_not_ahead.least
    return (
        Panel(
            kind="stat", title="Targets down", unit="none", width=4, height=4, limits={0: GOOD, 1: BAD},
            says="Replicas that Prometheus cannot scrape.",
            queries=(Prom(expr=f"count({jobs} == 0) or 0 * count({jobs})"),),
            nothing="No target is known to Prometheus",
        ),
        Panel(
            kind="stat", title="Stored", unit="rowsps", width=4, height=4, limits={0: PLAIN},
            says="New records that were committed a second.",
            queries=(Prom(expr=f"sum({_rate(names.INGEST_RECORDS, 'kind')})"),),
            nothing="No replica answers",
        ),
        Panel(
            kind="stat", title="Refused or turned away", unit="none", width=4, height=4, decimals=0,
            limits={0: GOOD, 1: WARN},
            says="Records that can never be stored, and requests turned away for now (senders repeat "
            "those) or for their token (those are lost), in the time shown.",
            queries=(Prom(expr=f"({refused} or vector(0)) + ({turned} or vector(0))"),),
            nothing="No replica answers",
        ),
        Panel(
            kind="stat", title="Waiting to be committed", unit="bytes", width=4, height=4, limits={0: PLAIN},
            says="Decoded bytes that were read and are not committed yet.",
            queries=(Prom(expr=f"sum({_own(names.INGEST_QUEUE_BYTES)})"),),
            nothing="No replica answers",
        ),
        Panel(
            kind="stat", title="Partitions ahead", unit="d", width=4, height=4,
            limits={0: BAD, least: GOOD},
            says=f"Days for which the database is prepared; an alert fires below {least:g}.",
            queries=(Prom(expr=f"min({_own(names.PARTITIONS_AHEAD)})"),),
            nothing="No replica answers",
        ),
        Panel(
            kind="stat", title="Database", unit="bytes", width=4, height=4, limits={0: PLAIN},
            says="What the database takes on disk.",
            queries=(Prom(expr=f"max({_own(names.DATABASE_BYTES)})"),),
            nothing="No replica answers",
        ),
    )  # fmt: skip


def _flow() -> tuple[Panel, ...]:
    buckets = f"{names.INGEST_REQUEST_DURATION}_bucket"
    return (
        Panel(
            kind="timeseries", title="Records stored", unit="rowsps", width=8, stacked=True,
            says="New records a second: calls, events, and log records with details.",
            queries=(Prom(expr=_rate(names.INGEST_RECORDS, "kind"), legend="{{kind}}"),),
            nothing="No replica answers",
        ),
        Panel(
            kind="timeseries", title="Requests answered", unit="reqps", width=8,
            says="Requests a second by transport and answer. 429, 503, RESOURCE_EXHAUSTED and UNAVAILABLE are "
            "turned away for now; senders repeat them.",
            queries=(
                Prom(expr=_rate(names.INGEST_REQUESTS, "transport", "status"), legend="{{transport}} {{status}}"),
            ),
            nothing="No request yet",
            empty="Before the first request there is no series.",
        ),
        Panel(
            kind="timeseries", title="Time to answer: half, 99 % are faster than", unit="s", width=8,
            says="From a request's first byte to its answer, which is sent after the commit.",
            queries=tuple(
                Prom(
                    expr=f"histogram_quantile({of:g}, sum by (le, transport) (rate({_own(buckets)}[$__rate_interval])))",
                    legend=f"{{{{transport}}}} {of:.0%}",
                )
                for of in (0.5, 0.99)
            ),
            nothing="No request in the time shown",
            empty="Without a request there is no duration.",
        ),
    )  # fmt: skip


def _losses(spec: Spec) -> tuple[Panel, ...]:
    late, dropped = (
        q.counted(spec, q.chosen_place(total(metric)), "service", "environment")
        for metric in (names.LATE_CALLS, names.TELEMETRY_DROPPED_TOTAL)
    )
    return (
        Panel(
            kind="timeseries", title="Never storable", unit="rowsps", width=6,
            says="Records refused for good, by what was wrong with them: a sender is broken.",
            queries=(Prom(expr=_rate(names.INGEST_REFUSED, "signal", "reason"), legend="{{signal}} {{reason}}"),),
            nothing="No replica answers",
        ),
        Panel(
            kind="timeseries", title="Not about tools", unit="rowsps", width=6,
            says="Records that were acknowledged and not kept, as they are not about tools. Much of it: send less.",
            queries=(Prom(expr=_rate(names.INGEST_IGNORED, "signal"), legend="{{signal}}"),),
            nothing="No replica answers",
        ),
        Panel(
            kind="timeseries", title="Dropped by services", unit="none", width=6, decimals=0,
            says="Records that services could not deliver and had to drop, as they say themselves.",
            queries=(Prom(expr=dropped, legend="{{service}} · {{environment}}"),),
            nothing="No service dropped anything",
            empty="The series begins with a service's first drop.",
        ),
        Panel(
            kind="timeseries", title="Late calls", unit="none", width=6, decimals=0,
            says="Calls received more than ten minutes after their end: stored, but no alert counts them.",
            queries=(Prom(expr=late, legend="{{service}} · {{environment}}"),),
            nothing="No call came late",
            empty="The series begins with a service's first late call.",
        ),
    )  # fmt: skip


def _room(spec: Spec) -> tuple[Panel, ...]:
    faults = f"sum(increase({_own(total(names.INGEST_SCRUB_FAULTS))}[{spec.windows.medium}]))"
    return (
        Panel(
            kind="table", title="Services, the longest silent first", width=12,
            says="When each service last declared a tool; running processes do so at least every hour.",
            queries=(Sql(statements.SERVICES),),
            columns=(
                Column(name="service", title="Service"),
                Column(name="environment", title="Environment", width=120),
                Column(name="tools", title="Tools", unit="none", width=70),
                Column(name="latest", title="Declared last", unit=TIME, width=120),
            ),
            nothing="No service declared a tool yet",
            empty="Services without the library declare nothing.",
        ),
        Panel(
            kind="timeseries", title="Database", unit="bytes", width=6,
            says="What the database takes on disk. Retention drops whole days.",
            queries=(Prom(expr=f"max({_own(names.DATABASE_BYTES)})", legend="database"),),
            nothing="No replica answers",
        ),
        Panel(
            kind="timeseries", title="Texts withheld", unit="none", width=6, decimals=0,
            says="Texts that were not stored as the scrubber failed on them: a fault in toolfault.",
            queries=(Prom(expr=faults, legend="texts"),),
            limits={0: GOOD, 1: BAD},
            nothing="No replica answers",
        ),
    )  # fmt: skip
