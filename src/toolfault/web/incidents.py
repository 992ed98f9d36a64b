"""Alerts that fired become incidents; cards, groups and lists point at them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from toolfault import conventions as names
from toolfault.store.queries import lists
from toolfault.taxonomy import ERROR_OUTCOMES
from toolfault.web.models import IncidentSummary

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from sqlalchemy import Connection

    from toolfault.store.queries.lists import Incident
    from toolfault.store.queries.references import Reference

#: An alert fires some time after the calls that made it fire.
BEFORE_FIRING = timedelta(minutes=30)
_PLACES = (
    names.LABEL_SERVICE,
    names.LABEL_ENVIRONMENT,
    names.LABEL_TOOL,
    names.LABEL_CODE,
    names.LABEL_OUTCOME,
)


def incident_for(conn: Connection, row: Reference, now: datetime) -> IncidentSummary | None:
    """The newest incident that a call belongs to, by its labels and its time."""
    if row.outcome not in ERROR_OUTCOMES:
        return None
    at = row.at
    found = lists.incidents(conn, at, min(at + BEFORE_FIRING, now))
    place = {name: getattr(row, name) for name in _PLACES}
    return next((summarise(one) for one in found if covers(one, place)), None)


def covers(incident: Incident, place: Mapping[str, str | None]) -> bool:
    """Whether an incident's labels name this place: none contradicts, and service or tool agrees."""
    labels = {name: incident.labels[name] for name in _PLACES if name in incident.labels}
    names_it = names.LABEL_SERVICE in labels or names.LABEL_TOOL in labels
    return names_it and all(place.get(name) == value for name, value in labels.items())


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


def in_scope(incidents: Iterable[Incident], scope: frozenset[str] | None) -> list[Incident]:
    """Incidents a token may see; those that name no service are everybody's."""
    return [
        one
        for one in incidents
        if scope is None or one.labels.get(names.LABEL_SERVICE) in (None, *scope)
    ]
