"""Read statements over rows written by hand."""

import json
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from toolfault.conventions import ATTEMPT_LIST, FIELD
from toolfault.store.queries import base, changes, errors, groups, lists, references, tools, totals

NOW = datetime.now(UTC).replace(microsecond=0)
FINGERPRINT = b"\x01\x02"


def add_call(connection, number, *, at=NOW, service="one", **fields):
    row = {
        "started_at": at,
        "received_at": at,
        "duration_us": 1000,
        "attempts": 1,
        "possibly_twice": False,
        "transient": False,
        "trace_id": number.to_bytes(16),
        "span_id": number.to_bytes(8),
        "service": service,
        "environment": "production",
        "tool": "tool",
        "outcome": "failed",
        "code": "INTERNAL",
        "action": "stop_and_tell_user",
        "effect": "unknown",
        "reference_id": f"r{number}",
        "fingerprint": FINGERPRINT,
        **fields,
    }
    names = ", ".join(row)
    marks = ", ".join(["%s"] * len(row))
    connection.execute(f"INSERT INTO tool_call ({names}) VALUES ({marks})", [*row.values()])  # noqa: S608
    connection.commit()


def test_totals_add_up_over_writers_and_keep_the_newest_exemplar(connection, conn):
    for slot, calls, minutes in ((0, 3, 5), (1, 4, 1), (2, 5, 9)):
        connection.execute(
            "INSERT INTO call_total VALUES (%s, %s, %s, %s, %s, 's', 'e', 't', 'failed', 'INTERNAL', %s, %s, %s, %s)",
            (
                calls,
                calls * 1000,
                calls,
                NOW - timedelta(minutes=minutes),
                slot,
                f"ref{slot}",
                bytes([slot]) * 16,
                [calls] + [0] * 14,
                [0, calls] + [0] * 6,
            ),
        )
    connection.commit()
    found = totals.totals(conn)
    assert found.calls == [
        totals.CallTotal(
            "s", "e", "t", "failed", "INTERNAL", 12, 12000, 12,
            NOW - timedelta(minutes=1), "ref1", bytes([1]) * 16,
        )
    ]  # fmt: skip
    assert found.buckets == [
        totals.Buckets("s", "e", "t", 12000, 12, [12] + [0] * 14, [0, 12] + [0] * 6)
    ]


def test_size_knows_the_last_partition(conn):
    assert totals.size(conn).last_partition == (datetime.now(UTC) + timedelta(days=7)).date()


def test_errors_page_by_arrival_and_key_without_loss_where_arrivals_are_equal(connection, conn):
    for number in range(1, 6):
        add_call(connection, number)
    first = errors.errors(conn, errors.Filters(), most=2).rows
    last = first[-1]
    rest = errors.errors(
        conn, errors.Filters(), before=(last.received_at, last.trace_id, last.span_id), most=9
    ).rows
    assert [row.reference_id for row in first + rest] == ["r5", "r4", "r3", "r2", "r1"]


@pytest.mark.parametrize(
    ("attributes", "field"),
    [({FIELD: "attendees.0.email", ATTEMPT_LIST: "[]"}, "attendees.0.email"), ({}, None), (None, None)],
)  # fmt: skip
def test_an_error_names_the_argument_that_was_wrong_where_its_record_does(
    connection, conn, attributes, field
):
    kept = None if attributes is None else json.dumps(attributes)
    add_call(connection, 1, outcome="invalid", code="INVALID_ARGUMENT", attributes=kept)
    (row,) = errors.errors(conn, errors.Filters(code=("INVALID_ARGUMENT",))).rows
    assert row.field == field


def test_scope_hides_rows_of_other_services(connection, conn):
    add_call(connection, 1, service="one")
    add_call(connection, 2, service="two")
    seen = errors.errors(conn, errors.Filters(), scope=frozenset({"two"})).rows
    assert [row.service for row in seen] == ["two"]
    assert errors.errors(conn, errors.Filters(), scope=frozenset()).rows == []


def test_a_group_counts_its_hours_over_all_writers_and_its_last_hour_in_the_rows(connection, conn):
    connection.execute(
        "INSERT INTO error_group (first_seen, fingerprint, service, environment, tool, code) VALUES (%s, %s, 's', 'e', 't', 'INTERNAL')",
        (NOW - timedelta(days=2), FINGERPRINT),
    )
    hour = NOW.replace(minute=0, second=0)
    for slot, at, calls in ((0, hour, 2), (1, hour, 3), (0, hour - timedelta(hours=30), 7)):
        connection.execute(
            "INSERT INTO error_group_tally VALUES (%s, %s, %s, %s, %s)",
            (at, calls, at, slot, FINGERPRINT),
        )
    add_call(connection, 1)
    add_call(connection, 2, at=NOW - timedelta(minutes=59))
    add_call(connection, 3, at=NOW - timedelta(minutes=61))
    group = groups.group(conn, FINGERPRINT, NOW).first()
    assert (group.calls, group.last_seen, group.calls_last_hour) == (12, hour, 2)
    assert groups.groups(conn, NOW) == [group]
    assert groups.hours(conn, FINGERPRINT, hour - timedelta(hours=24)) == [groups.Hour(hour, 5)]


def test_a_conversation_is_read_around_the_call_within_its_environment(connection, conn):
    for number in range(1, 8):
        at = NOW - timedelta(minutes=10 - number)
        add_call(connection, number, at=at, conversation_id="c", fingerprint=None)
    add_call(connection, 8, conversation_id="c", environment="staging")
    row = references.Reference(
        "r4", NOW.date(), (4).to_bytes(16), (4).to_bytes(8), NOW - timedelta(minutes=6), NOW,
        "one", "production", "tool", "failed", "INTERNAL", None, "none", 1, "unknown", None,
    )  # fmt: skip
    steps = references.conversation(conn, row, most=2).rows()
    assert [step.reference_id for step in steps] == ["r3", "r4", "r5", "r6"]


def test_only_one_acknowledgement_of_a_dead_letter_counts(connection, conn):
    connection.execute(
        "INSERT INTO dead_letter (occurred_at, id, trace_id, service, environment) VALUES (%s, %s, %s, 's', 'e')",
        (NOW, b"\x01", bytes(16)),
    )
    connection.commit()
    assert not changes.acknowledge(conn, b"\x01", "anna", NOW, frozenset({"other"}))
    assert changes.acknowledge(conn, b"\x01", "anna", NOW)
    assert not changes.acknowledge(conn, b"\x01", "ben", NOW)
    assert lists.dead_letters(conn) == []
    assert [letter.acked_by for letter in lists.dead_letters(conn, waiting=False)] == ["anna"]


def test_an_incident_is_one_row_however_often_it_is_reported(connection, conn):
    report = {
        "alert_id": "a",
        "name": "n",
        "started_at": NOW,
        "labels": {"tool": "t"},
        "annotations": {},
    }
    changes.record_incident(conn, ended_at=None, **report)
    changes.record_incident(conn, ended_at=None, **report)
    assert [one.ended_at for one in lists.incidents(conn, NOW, NOW).rows()] == [None]
    changes.record_incident(conn, ended_at=NOW + timedelta(minutes=5), **report)
    assert (
        lists.incidents(conn, NOW + timedelta(minutes=6), NOW + timedelta(minutes=9)).rows() == []
    )
    assert len(lists.incidents(conn, NOW, NOW).rows()) == 1


def test_tool_levels_are_split_at_the_given_hour(connection, conn):
    hour = NOW.replace(minute=0, second=0)
    for at, calls in ((hour, 5), (hour - timedelta(hours=5), 7)):
        connection.execute(
            "INSERT INTO call_tally VALUES (%s, %s, 0, 's', 'e', 't', 'ok', 'OK')", (at, calls)
        )
    connection.commit()
    found = tools.ended(conn, hour - timedelta(days=7), hour)
    assert found == [tools.Ended("s", "e", "t", "ok", 5, 7, hour - timedelta(hours=5))]


def test_a_search_for_a_rare_value_stops_and_goes_on_where_it_stopped(connection, conn):
    for number in range(1, 11):
        add_call(connection, number, reason="rare" if number in (2, 9) else "usual")
    rare = errors.Filters(reason=("rare",))
    first = errors.errors(conn, rare, searched=5)
    assert [row.reference_id for row in first.rows] == ["r9"]
    second = errors.errors(conn, rare, before=first.searched_to, searched=5)
    assert [row.reference_id for row in second.rows] == ["r2"]
    assert second.searched_to is None
    assert errors.errors(conn, rare, scope=frozenset({"other"}), searched=5) == ([], None)
    assert errors.errors(conn, errors.Filters(), searched=5).searched_to is None


def test_what_is_asked_together_is_there_afterwards_and_a_fault_ends_nothing_else(conn):
    with base.together(conn):
        first = base.ask(conn, groups.Hour, "SELECT now(), 1")
        second = base.ask(conn, groups.Hour, "SELECT now(), 2 UNION ALL SELECT now(), 3 ORDER BY 2")
    assert first.first().calls == 1
    assert [row.calls for row in second.rows()] == [2, 3]

    with pytest.raises(psycopg.errors.DivisionByZero), base.together(conn):
        base.execute(conn, "SELECT 1 / 0", {})
    assert base.scalar(conn, "SELECT 1") == 1
