"""The write path: one decoded batch, one transaction; totals move only by rows that are really new.

Every writer takes its locks in one order, each step sorted by key, so that writers do not deadlock:
labels, calls, events, log records, references, groups, dead letters and catalogue, totals.
"""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import blake2b
from typing import TYPE_CHECKING

from psycopg import errors

from toolfault import conventions
from toolfault.store import locks
from toolfault.store.connect import connect
from toolfault.store.groups import Groups
from toolfault.store.labels import Labels
from toolfault.store.records import Bounds, Row, write_new
from toolfault.store.references import write_references
from toolfault.store.rows import Loaded
from toolfault.store.stage import Stage
from toolfault.store.totals import Totals
from toolfault.taxonomy import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg import Connection

    from toolfault.store.rows import Call, Event, Log

_OK = Outcome.OK.value
_TRIES = 5
_SESSION = """SELECT set_config('statement_timeout', '10s', false),
    set_config('idle_in_transaction_session_timeout', '60s', false),
    CASE WHEN current_setting('synchronous_commit') IN ('off', 'local')
         THEN set_config('synchronous_commit', 'on', false) END"""
_DEAD_LETTER = """INSERT INTO dead_letter
    (id, occurred_at, trace_id, service, environment, tool, reference_id, attributes)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s::text::jsonb) ON CONFLICT (id) DO NOTHING"""
_DECLARE = """INSERT INTO tool_catalog (service, environment, tool, first_seen, last_seen, versions, declared)
    VALUES (%s, %s, %s, %s, %s, %s, %s::text::jsonb)
    ON CONFLICT (service, environment, tool) DO UPDATE SET
    first_seen = least(tool_catalog.first_seen, excluded.first_seen),
    last_seen = greatest(tool_catalog.last_seen, excluded.last_seen),
    versions = CASE WHEN excluded.versions <@ tool_catalog.versions THEN tool_catalog.versions
                    ELSE tool_catalog.versions || excluded.versions END,
    declared = CASE WHEN excluded.last_seen >= tool_catalog.last_seen THEN excluded.declared
                    ELSE tool_catalog.declared END"""


class Writer:
    """Writes batches over one connection. After an error of the connection, make a new one of both.

    `slot` is this writer's alone among all replicas: its rows of the totals are locked by nobody else.
    A writer that `imports` moves no total that an alert reads.
    """

    def __init__(self, conn: Connection, slot: int, *, imports: bool = False) -> None:
        self.conn, self.slot, self.imports = conn, slot, imports
        self.retries = 0
        self._labels, self._groups = Labels(), Groups()
        self._bounds = Bounds(conn)
        self._stage = Stage(conn)

    @classmethod
    def open(cls, url: str, *, imports: bool = False) -> Writer:
        """A writer with a connection and a slot of its own; both go with `close`.

        Raises:
            DatabaseUnreachableError: nobody answers at `url`.
        """
        conn = connect(url, autocommit=True)
        try:
            conn.execute(_SESSION)
            return cls(conn, take_slot(conn), imports=imports)
        except BaseException:
            conn.close()
            raise

    def close(self) -> None:
        """Closes the connection, which frees the slot."""
        self.conn.close()

    def load(
        self, calls: Sequence[Call], events: Sequence[Event] = (), logs: Sequence[Log] = ()
    ) -> Loaded:
        """Commits a batch and says how many of its rows were new. Harmless to repeat."""
        try:
            return self._commit(calls, events, logs, unknown=True)
        except errors.UniqueViolation:  # some of it was delivered before; all was rolled back
            return self._commit(calls, events, logs, unknown=False)

    def _commit(
        self, calls: Sequence[Call], events: Sequence[Event], logs: Sequence[Log], *, unknown: bool
    ) -> Loaded:
        for tries_left in reversed(range(_TRIES)):
            now = datetime.now(UTC)
            try:
                self._bounds.refresh(now)
                with self.conn.transaction():
                    loaded = self._load(now, calls, events, logs, unknown=unknown)
            except (errors.DeadlockDetected, errors.SerializationFailure):
                if not tries_left:
                    raise
            except errors.CheckViolation as error:
                if not tries_left or "no partition" not in str(error):
                    raise
                self._bounds.read(now)  # a partition went while we were running
            else:
                self._labels.committed()
                self._groups.committed()
                return loaded
            self.retries += 1
        raise AssertionError  # the last try returns or raises

    def _load(
        self,
        now: datetime,
        calls: Sequence[Call],
        events: Sequence[Event],
        logs: Sequence[Log],
        *,
        unknown: bool,
    ) -> Loaded:
        stage, labels = self._stage, self._labels
        labels.begin()
        self._groups.begin()
        ok = [call for call in calls if call.outcome == _OK]
        others = [call for call in calls if call.outcome != _OK]
        labels.admit(stage.cursor, ok, others, events)
        ok = self._new("tool_call_ok", ok, now, unknown=unknown)
        # These come twice, on the span and on its event.
        others = self._new("tool_call", others, now, unknown=False)
        new_events = self._new("run_event", events, now, unknown=unknown)
        new_logs = self._new("log_record", logs, now, unknown=unknown)
        write_references(stage, self._bounds.days("reference", now), others, new_events, new_logs)
        totals = Totals(labels, self.slot, imports=self.imports)
        self._groups.write(stage, others, totals, now)
        self._write_notes(new_events)
        totals.count_calls(ok)
        totals.count_calls(others)
        totals.count_events(new_events)
        totals.write(stage)
        return Loaded(len(ok) + len(others), len(new_events), len(new_logs))

    def _new(self, table: str, rows: Sequence[Row], now: datetime, *, unknown: bool) -> list[Row]:
        bounds = self._bounds.times(table, now)
        return write_new(self._stage, table, rows, bounds, unknown=unknown)

    def _write_notes(self, events: Sequence[Event]) -> None:
        """Dead letters and declarations of tools, in the order of their keys."""
        cursor = self._stage.cursor
        letters = {
            _letter_id(event): event
            for event in events
            if event.event_name == conventions.DEAD_LETTER
        }
        for letter_id, letter in sorted(letters.items()):
            place = letter.service, letter.environment, letter.label, letter.reference_id
            cursor.execute(
                _DEAD_LETTER,
                (letter_id, letter.occurred_at, letter.trace_id, *place, letter.attributes),
            )
        for declared in sorted(filter(_declares, events), key=_tool_of):
            versions = [declared.version] if declared.version else []
            times = declared.occurred_at, declared.occurred_at
            cursor.execute(_DECLARE, (*_tool_of(declared), *times, versions, declared.attributes))


def _declares(event: Event) -> bool:
    return event.event_name == conventions.TOOL_DECLARED and bool(event.label)


def _tool_of(event: Event) -> tuple[str, str, str]:
    return event.service, event.environment, event.label or ""


def take_slot(conn: Connection) -> int:
    """The smallest free slot, held for as long as the connection lives."""
    slot = 0
    while True:
        with conn.transaction():
            row = conn.execute(
                "SELECT pg_try_advisory_lock(%s, %s)", (locks.SLOTS, slot)
            ).fetchone()
        if row is not None and row[0]:
            return slot
        slot += 1


def _letter_id(event: Event) -> bytes:
    return blake2b(event.trace_id + event.span_id + event.digest, digest_size=16).digest()
