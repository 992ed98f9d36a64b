"""Erasing a conversation: its details and outlines go, what was counted stays counted.

A record that is delivered again afterwards is stored again: erase once more when agents have sent
what they held back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from toolfault import conventions

if TYPE_CHECKING:
    from psycopg import Connection

_NO_TRACE = bytes(16)  # shared by every record without a trace, so nobody's
_WITH_CONVERSATION = ("tool_call", "tool_call_ok", "run_event")
# In a trace of several conversations a record that names another one is not ours.
_TRACES = " UNION ".join(
    f"SELECT trace_id FROM {table} WHERE conversation_id = %(conversation)s"  # noqa: S608  # names of ours
    for table in _WITH_CONVERSATION
)
_DELETE = {
    table: f"DELETE FROM {table} WHERE conversation_id = %(conversation)s "  # noqa: S608
    "OR (conversation_id IS NULL AND trace_id = ANY(%(traces)s)) "
    f"RETURNING {reference}"
    for table, reference in (
        ("tool_call", "reference_id"), ("tool_call_ok", "NULL::text"), ("run_event", "reference_id"),
    )
}  # fmt: skip
_OTHERS = """SELECT reference_id FROM tool_call WHERE trace_id = ANY(%(traces)s)
    AND conversation_id <> %(conversation)s AND reference_id IS NOT NULL"""
_DELETE_LOGS = """DELETE FROM log_record WHERE reference_id = ANY(%(references)s)
    OR (trace_id = ANY(%(traces)s) AND (reference_id IS NULL OR reference_id <> ALL (%(others)s)))"""
_DELETE_REFERENCES = """DELETE FROM reference WHERE reference_id = ANY(%(references)s)
    AND trace_id = ANY(%(all_traces)s)"""
# A letter is often left outside of every span: only what it says itself tells whose it is.
_DELETE_LETTERS = """DELETE FROM dead_letter WHERE attributes ->> %(named)s = %(conversation)s
    OR (attributes ->> %(named)s IS NULL AND (reference_id = ANY(%(references)s)
    OR (trace_id = ANY(%(traces)s) AND (reference_id IS NULL OR reference_id <> ALL (%(others)s)))))"""
_SAMPLES = (
    "SELECT fingerprint FROM error_group WHERE sample_reference_id = ANY(%(references)s) ORDER BY 1"
)
_FORGET_SAMPLE = "UPDATE error_group SET sample_reference_id = NULL WHERE fingerprint = %s"
_EXEMPLARS = """SELECT service, environment, tool, outcome, code, slot FROM call_total
    WHERE exemplar_trace = ANY(%(traces)s) OR exemplar_reference = ANY(%(references)s) ORDER BY 1, 2, 3, 4, 5, 6"""
_FORGET_EXEMPLAR = """UPDATE call_total SET exemplar_reference = NULL, exemplar_trace = NULL, exemplar_at = NULL
    WHERE service = %s AND environment = %s AND tool = %s AND outcome = %s AND code = %s AND slot = %s"""


class Erased(NamedTuple):
    """Rows that went."""

    calls: int
    events: int
    logs: int
    references: int
    dead_letters: int


def erase_conversation(conn: Connection, conversation_id: str) -> Erased:
    """Erases what is stored about a conversation, in one transaction and in the writers' order of locks."""
    with conn.transaction():
        found = conn.execute(_TRACES, {"conversation": conversation_id}).fetchall()
        all_traces = [trace for (trace,) in found]
        ours: dict[str, object] = {
            "conversation": conversation_id,
            "named": conventions.CONVERSATION_ID,
            "all_traces": all_traces,
            "traces": [trace for trace in all_traces if trace != _NO_TRACE],
        }
        ours["others"] = [reference for (reference,) in conn.execute(_OTHERS, ours)]
        gone = {
            table: conn.execute(_DELETE[table], ours).fetchall()
            for table in ("tool_call_ok", "tool_call", "run_event")
        }
        ours["references"] = [
            reference for rows in gone.values() for (reference,) in rows if reference
        ]
        logs = conn.execute(_DELETE_LOGS, ours).rowcount
        references = conn.execute(_DELETE_REFERENCES, ours).rowcount
        for key in conn.execute(_SAMPLES, ours).fetchall():
            conn.execute(_FORGET_SAMPLE, key)
        letters = conn.execute(_DELETE_LETTERS, ours).rowcount
        for key in conn.execute(_EXEMPLARS, ours).fetchall():
            conn.execute(_FORGET_EXEMPLAR, key)
    calls = len(gone["tool_call_ok"]) + len(gone["tool_call"])
    return Erased(calls, len(gone["run_event"]), logs, references, letters)
