"""Statements that name the partitions they read give what the whole tables give."""

import re
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from tests.store.conftest import connected

from toolfault.store import partitions
from toolfault.store.queries import references
from toolfault.store.queries.base import together
from toolfault.store.queries.days import ANY_DAY, Days, around, there

MIDNIGHT = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
DAY = timedelta(days=1)
CRASH = {"code": "INTERNAL", "action": "stop_and_tell_user"}


def known(conn, *days):
    """The days around some, as a look-up finds them out."""
    of_days = around(*days)
    return Days(of_days, there(conn, of_days).rows()[0].names)


def row_of(of):
    kept = {name: getattr(of, name, None) for name in references.Reference._fields}
    return references.Reference(**{**kept, "day": of.started_at.date()})


@pytest.fixture
def of_midnight(make, writer):
    """A call just before the last midnight, in a conversation of both days with calls that were ok."""
    own = make.failed(started_at=MIDNIGHT - timedelta(seconds=1), tool="t3", **CRASH)
    calls = [
        make.failed(started_at=MIDNIGHT - 2 * DAY),  # too long ago
        make.ok(started_at=MIDNIGHT - DAY + timedelta(minutes=1), tool="t1"),
        make.failed(started_at=MIDNIGHT - timedelta(hours=1), tool="t2", **CRASH),
        own,
        make.ok(started_at=MIDNIGHT, tool="t4"),
        make.failed(
            started_at=MIDNIGHT + timedelta(seconds=2), tool="t5",
            **CRASH | {"outcome": "declined", "code": "CONFLICT"},
        ),
        make.failed(started_at=MIDNIGHT + timedelta(seconds=3), conversation_id="another"),
    ]  # fmt: skip
    times = (MIDNIGHT - timedelta(seconds=2), MIDNIGHT + timedelta(hours=2))
    logs = [make.log(own, occurred_at=at, body=f"{at:%d %H:%M}") for at in times]
    writer.load(calls, logs=logs)
    return row_of(own)


@pytest.mark.parametrize("by_name", [True, False])
def test_a_conversation_goes_on_over_midnight_through_calls_that_were_ok(
    of_midnight, conn, by_name
):
    days = known(conn, MIDNIGHT.date() - DAY) if by_name else ANY_DAY
    with together(conn):
        steps = references.conversation(conn, of_midnight, days=days)
        own = references.call_of(conn, of_midnight, days)
        logs = references.logs(conn, of_midnight, days=days)
    assert own.first().tool == "t3"
    assert [(step.tool, step.outcome, step.code, step.action) for step in steps.rows()] == [
        ("t1", "ok", None, "none"),
        ("t2", "failed", "INTERNAL", "stop_and_tell_user"),
        ("t3", "failed", "INTERNAL", "stop_and_tell_user"),
        ("t4", "ok", None, "none"),
        ("t5", "declined", "CONFLICT", "stop_and_tell_user"),
    ]
    before, after = MIDNIGHT - timedelta(seconds=2), MIDNIGHT + timedelta(hours=2)
    assert [line.body for line in logs.rows()] == [f"{before:%d} 23:59", f"{after:%d} 02:00"]


def test_a_table_is_read_through_its_partitions_of_the_days_asked_for(conn):
    noon = MIDNIGHT + timedelta(hours=12)
    days = known(conn, noon.date())
    assert days.table("tool_call", noon, noon) == f"( TABLE tool_call_{noon:%Y%m%d} ) AS tool_call"
    both = days.table("log_record", noon - DAY, noon, "log_record_undated")
    assert re.findall(r"TABLE (\w+)", both) == [
        f"log_record_{noon - DAY:%Y%m%d}",
        f"log_record_{noon:%Y%m%d}",
        "log_record_undated",
    ]


def test_days_that_were_not_asked_about_are_left_to_the_table(conn):
    days = known(conn, MIDNIGHT.date())
    assert days.table("tool_call", MIDNIGHT - 2 * DAY, MIDNIGHT).startswith("( TABLE")
    assert days.table("tool_call", MIDNIGHT - 3 * DAY, MIDNIGHT) == "tool_call"
    assert days.table("tool_call", MIDNIGHT, MIDNIGHT + 3 * DAY) == "tool_call"
    assert ANY_DAY.table("tool_call", MIDNIGHT, MIDNIGHT) == "tool_call"


def test_days_without_a_partition_have_no_rows(make, new_database):
    url, then = new_database(), MIDNIGHT - 5 * DAY
    with psycopg.connect(url) as maintaining:
        partitions.maintain(maintaining, datetime.now(UTC), partitions.Retention(ok_days=1))
    with connected(url) as conn:
        days = known(conn, then.date())
        assert days.table("tool_call_ok", then, then) == (
            "( SELECT * FROM tool_call_ok WHERE false ) AS tool_call_ok"
        )
        assert (
            references.conversation(conn, row_of(make.failed(started_at=then)), days=days).rows()
            == []
        )


def test_a_partition_that_was_detached_is_read_no_more(new_database):
    url, today = new_database(), MIDNIGHT.date()
    name = f"tool_call_{today:%Y%m%d}"
    with connected(url) as conn, psycopg.connect(url, autocommit=True) as other:
        assert name in there(conn, [today]).rows()[0].names
        other.execute(f"ALTER TABLE tool_call DETACH PARTITION {name}")
        assert name not in there(conn, [today]).rows()[0].names
