"""What people and alerts change: group status, dead letters, incidents, the audit of look-ups."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from toolfault.store.queries.base import Scope, execute, in_scope, scope_value, statement

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from sqlalchemy import Connection

STATUSES = ("open", "resolved", "muted")
_SET_STATUS = statement(
    "UPDATE error_group SET status = %(status)s, status_at = %(now)s WHERE fingerprint = %(fingerprint)s AND",
    in_scope(),
)
_ACK = statement(
    "UPDATE dead_letter SET acked_at = %(now)s, acked_by = %(by)s WHERE id = %(id)s AND acked_at IS NULL AND",
    in_scope(),
)
_FIRE = statement(
    "INSERT INTO incident (started_at, ended_at, alert_id, name, labels, annotations)",
    "VALUES (%(started_at)s, %(ended_at)s, %(alert_id)s, %(name)s,",
    "CAST(%(labels)s AS jsonb), CAST(%(annotations)s AS jsonb))",
    "ON CONFLICT (alert_id, started_at) DO UPDATE SET ended_at = excluded.ended_at,",
    "labels = excluded.labels, annotations = excluded.annotations",
)
# An audit row is written at every look-up: its commit does not wait for the disk, so at most the
# last moments before a crash of the database are lost.
_AUDIT = statement(
    "WITH quiet AS (SELECT set_config('synchronous_commit', 'off', true))",
    "INSERT INTO lookup_audit (looked_at, id, token_id, asked, state)",
    "SELECT %(now)s, %(id)s, CAST(%(token_id)s AS uuid), %(asked)s, %(state)s FROM quiet",
)


def set_status(
    conn: Connection, fingerprint: bytes, status: str, now: datetime, scope: Scope = None
) -> bool:
    """Opens, resolves or mutes a group; False when there is none in scope."""
    values = {"fingerprint": fingerprint, "status": status, "now": now}
    return execute(conn, _SET_STATUS, {**values, "scope": scope_value(scope)}).rowcount > 0


def acknowledge(conn: Connection, id_: bytes, by: str, now: datetime, scope: Scope = None) -> bool:
    """Takes a dead letter off the waiting list; False when none is waiting under that id."""
    values = {"id": id_, "by": by, "now": now, "scope": scope_value(scope)}
    return execute(conn, _ACK, values).rowcount > 0


def record_incident(
    conn: Connection,
    *,
    alert_id: str,
    name: str,
    started_at: datetime,
    ended_at: datetime | None,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
) -> None:
    """Stores what an alert says about itself now; the same alert again changes its end."""
    values = {"alert_id": alert_id, "name": name, "started_at": started_at, "ended_at": ended_at}
    texts = {"labels": json.dumps(dict(labels)), "annotations": json.dumps(dict(annotations))}
    execute(conn, _FIRE, {**values, **texts})


def audit(
    conn: Connection, *, asked: str, state: str, now: datetime, token_id: UUID | None
) -> None:
    """Remembers who looked what up."""
    values = {"id": uuid4(), "asked": asked, "state": state, "now": now, "token_id": token_id}
    execute(conn, _AUDIT, values)
