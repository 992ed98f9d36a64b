"""Which services, tools, models and agents may be labels of a metric.

A tool becomes one when it is declared or has a successful call: a name the model made up never
does. There is a cap on each kind; past it everything is `__other__`, so that sums stay right.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from toolfault import conventions
from toolfault.store import locks

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from psycopg import Cursor

    from toolfault.store.rows import Call, Event

TOOL, MODEL, AGENT, SERVICE = "tool", "model", "agent", "service"
#: Of the kind tool it counts (service, environment, tool) triples, of service the pairs.
CAPS = {TOOL: 2000, MODEL: 200, AGENT: 200, SERVICE: 200}
#: The metric each event counts in and the kind of label it has beside service and environment.
EVENT_METRICS = {
    conventions.BUDGET_EXHAUSTED: (conventions.BUDGET_EXHAUSTED_TOTAL, TOOL),
    conventions.GENERIC_ERROR: (conventions.GENERIC_ERROR_TOTAL, TOOL),
    conventions.BACKSTOP_REACHED: (conventions.BACKSTOP_REACHED_TOTAL, TOOL),
    conventions.UNREGISTERED_TOOL: (conventions.UNREGISTERED_TOOL_CALLS, SERVICE),
    conventions.RUN_LIMIT_EXCEEDED: (conventions.RUN_LIMIT_EXCEEDED_TOTAL, AGENT),
    conventions.MODEL_CALL: (conventions.MODEL_CALLS, MODEL),
    conventions.TELEMETRY_DROPPED: (conventions.TELEMETRY_DROPPED_TOTAL, SERVICE),
}

Label = tuple[str, str, str, str]  # kind, service, environment, value
Place = tuple[str, str, str]  # service, environment, value as they are shown

_PLACE = attrgetter("service", "environment", "tool")
_ASKED = """SELECT kind, service, environment, value FROM label
    JOIN unnest(%s::text[], %s::text[], %s::text[], %s::text[]) AS asked (kind, service, environment, value)
    USING (kind, service, environment, value)"""
_INSERT = "INSERT INTO label (kind, service, environment, value) VALUES (%s, %s, %s, %s)"


def label_of(kind: str, service: str, environment: str, value: str | None) -> Label:
    """The label a record asks for, cut to the length labels have."""
    longest = conventions.MAX_LABEL
    shown = "" if kind == SERVICE or value is None else value[:longest]
    return kind, service[:longest], environment[:longest], shown


class Labels:
    """What is admitted: known from transactions that committed, and in the present one."""

    def __init__(self) -> None:
        self._known: set[Label] = set()
        self._full: set[str] = set()  # kinds at their cap take no lock any more
        self._admitted: set[Label] = set()

    def begin(self) -> None:
        """Forgets what a transaction admitted that did not commit."""
        self._admitted = set()

    def committed(self) -> None:
        """Remembers what the transaction admitted."""
        self._known |= self._admitted

    def name(self, kind: str, service: str, environment: str, value: str | None) -> Place:
        """Under which labels a record of this place is counted."""
        asked = label_of(kind, service, environment, value)
        for label in (asked, (*asked[:3], conventions.UNDECLARED)):
            if label in self._known or label in self._admitted:
                return label[1:]
        other = conventions.OTHER
        return other, other, "" if kind == SERVICE else other

    def admit(
        self,
        cursor: Cursor[Any],
        ok: Sequence[Call],
        others: Sequence[Call],
        events: Sequence[Event],
    ) -> None:
        """Admits what the batch brings; before any row is written, so that a writer waiting for the lock holds none."""
        proven, unproven = _wanted(set(map(_PLACE, ok)), set(map(_PLACE, others)), events)
        self._look_up(cursor, (proven | unproven) - self._known)
        known = self._known | self._admitted
        missing = proven - known
        missing |= {
            (*label[:3], conventions.UNDECLARED) for label in unproven - known - missing
        } - known
        if missing := {label for label in missing if label[0] not in self._full}:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", (locks.LABELS,))
            self._look_up(cursor, missing)  # another writer may have been first
            self._insert(cursor, sorted(missing - self._admitted))

    def _insert(self, cursor: Cursor[Any], labels: Iterable[Label]) -> None:
        cursor.execute("SELECT kind, count(*) FROM label GROUP BY kind")
        room = CAPS | {kind: CAPS[kind] - count for kind, count in cursor.fetchall()}
        self._full = {kind for kind, left in room.items() if left <= 0}
        for label in labels:
            if room[label[0]] > 0:
                room[label[0]] -= 1
                cursor.execute(_INSERT, label)
                self._admitted.add(label)

    def _look_up(self, cursor: Cursor[Any], labels: set[Label]) -> None:
        if labels:
            cursor.execute(_ASKED, [list(column) for column in zip(*labels, strict=True)])
            self._admitted.update(cursor.fetchall())


def _wanted(
    ok: set[Place], others: set[Place], events: Sequence[Event]
) -> tuple[set[Label], set[Label]]:
    """Labels that are admitted for what came, and those admitted only if they are known already."""
    proven = {label_of(TOOL, *place) for place in ok}
    unproven = {label_of(TOOL, *place) for place in others} - proven
    proven |= {label_of(SERVICE, *place) for place in ok | others}
    for event in events:
        declares = event.event_name == conventions.TOOL_DECLARED
        kind = TOOL if declares else EVENT_METRICS.get(event.event_name, (None, None))[1]
        if kind is not None:
            group = unproven if kind == TOOL and not declares else proven
            group.add(label_of(kind, event.service, event.environment, event.label))
    return proven, unproven
