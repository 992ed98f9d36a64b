"""Alerts that fired become incidents; cards, groups and lists point at them."""

from __future__ import annotations

from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from toolfault import conventions as names
from toolfault.store.queries import lists
from toolfault.taxonomy import ERROR_OUTCOMES
from toolfault.web.models import IncidentSummary

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from datetime import datetime

    from sqlalchemy import Connection

    from toolfault.store.queries.lists import Incident
    from toolfault.store.queries.references import Reference

#: A ticket that follows a page must not hide it from who asks about the same call.
_SEVERITIES = ("critical", "warning", "ticket")
#: An alert fires some time after the calls that made it fire.
BEFORE_FIRING = timedelta(minutes=30)
_PLACES = (
    names.LABEL_SERVICE,
    names.LABEL_ENVIRONMENT,
    names.LABEL_TOOL,
    names.LABEL_CODE,
    names.LABEL_OUTCOME,
)


class Incidents:
    """The incidents of a stretch of time, to be pointed at by many rows."""

    def __init__(self, conn: Connection, times: Collection[datetime]) -> None:
        bounds = (min(times), max(times) + BEFORE_FIRING) if times else None
        self._asked = lists.incidents(conn, *bounds) if bounds else None

    @cached_property
    def _known(self) -> list[Incident]:
        return self._asked.rows() if self._asked else []

    def of(
        self, place: Mapping[str, str | None], began: datetime, ended: datetime | None = None
    ) -> IncidentSummary | None:
        """The gravest incident over this place that touches this stretch; of those the newest."""
        last = (ended or began) + BEFORE_FIRING
        near = [
            one
            for one in self._known
            if one.started_at <= last
            and (one.ended_at is None or one.ended_at >= began)
            and covers(one, place)
        ]
        return summarise(min(near, key=_rank)) if near else None


def _rank(incident: Incident) -> int:
    severity = incident.labels.get("severity")
    return _SEVERITIES.index(severity) if severity in _SEVERITIES else len(_SEVERITIES)


def place_of(row: Any) -> dict[str, str | None]:
    """The labels of a row that an incident can name."""
    return {name: getattr(row, name) for name in _PLACES if hasattr(row, name)}


def incident_for(row: Reference, incidents: Incidents) -> IncidentSummary | None:
    """The incident that a call belongs to, by its labels and its time."""
    return incidents.of(place_of(row), row.at) if row.outcome in ERROR_OUTCOMES else None


def covers(incident: Incident, place: Mapping[str, str | None]) -> bool:
    """Whether an incident is about calls of this place.

    No label contradicts, and it names a tool, or a kind of failure of a service: an alert on a
    service alone is about its telemetry.
    """
    labels = {name: incident.labels[name] for name in _PLACES if name in incident.labels}
    kinds = {names.LABEL_CODE, names.LABEL_OUTCOME}
    names_it = names.LABEL_TOOL in labels or (
        names.LABEL_SERVICE in labels and kinds & labels.keys()
    )
    return bool(names_it) and all(place.get(name) == value for name, value in labels.items())


def summarise(incident: Incident) -> IncidentSummary:
    """An incident as cards show it."""
    annotations = incident.annotations
    runbook = annotations.get("runbook_url", "")
    return IncidentSummary(
        name=incident.name,
        summary=annotations.get("summary"),
        runbook=runbook if runbook.startswith(("https://", "http://")) else None,
        since=incident.started_at,
        until=incident.ended_at,
    )


def gravest_first(incidents: Iterable[Incident]) -> list[Incident]:
    """The ones that wake somebody before those that can wait."""
    return sorted(incidents, key=_rank)


def in_scope(incidents: Iterable[Incident], scope: frozenset[str] | None) -> list[Incident]:
    """Incidents a token may see; those that name no service are everybody's."""
    return [
        one
        for one in incidents
        if scope is None or one.labels.get(names.LABEL_SERVICE) in (None, *scope)
    ]
