"""Partitions ahead and by age; safe to run twice, at once, or to be killed; writers never wait long."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import pairwise

import psycopg
import pytest

from toolfault.store import locks, partitions, schema
from toolfault.store.models import DAILY, MONTHLY, UNDATED
from toolfault.store.partitions import Maintained, Retention, ahead, existing, maintain

DAY = timedelta(days=1)
SHORT = Retention(ok_days=1, days=2, outline_days=40, ahead_days=1)


@pytest.fixture
def bare(empty_database_url):
    """A connection to tables without partitions."""
    schema.upgrade(empty_database_url)
    with psycopg.connect(empty_database_url) as conn:
        yield conn


def _days(conn, table, today):
    """Partitions of a table as days from today, without `undated`."""
    return [(span.low - today).days for span in existing(conn, table) if span.low != UNDATED.date()]


def test_every_daily_table_gets_its_days_back_and_ahead(bare, make):
    maintain(bare, make.now, SHORT)
    today = make.now.date()
    assert {table: _days(bare, table, today) for table in DAILY} == {
        "tool_call_ok": [-1, 0, 1],
        "tool_call": [-2, -1, 0, 1],
        "run_event": [-2, -1, 0, 1],
        "log_record": [-2, -1, 0, 1],
    }


def test_by_default_a_week_ahead_three_days_of_ok_calls_thirty_of_others_and_four_hundred_of_outlines():
    assert Retention() == Retention(ok_days=3, days=30, outline_days=400, ahead_days=7)


def test_monthly_tables_get_whole_months(bare, make):
    maintain(bare, make.now, SHORT)
    first = (make.now.date() - DAY * 40).replace(day=1)
    for table in MONTHLY:
        spans = [span for span in existing(bare, table) if span.low != UNDATED.date()]
        assert spans[0].low == first
        assert spans[-1].low <= make.now.date() + DAY < spans[-1].high
        assert all(before.high == after.low for before, after in pairwise(spans))


def test_every_table_with_records_has_room_for_absurd_times(bare, make):
    maintain(bare, make.now, SHORT)
    for table in (*DAILY, "reference"):
        assert existing(bare, table)[-1] == (
            f"{table}_undated",
            UNDATED.date(),
            UNDATED.date() + DAY,
        )


def test_a_second_run_changes_nothing(bare, make):
    assert maintain(bare, make.now, SHORT).made
    assert maintain(bare, make.now, SHORT) == Maintained()


def test_a_run_that_was_killed_half_way_is_finished_by_the_next(bare, make):
    maintain(bare, make.now, SHORT)
    name = f"tool_call_{make.now:%Y%m%d}"
    bare.execute(f"DROP TABLE {name}")
    bare.commit()
    assert maintain(bare, make.now, SHORT).made == (name,)


def test_what_is_older_than_its_days_goes_and_the_rest_stays(bare, make):
    maintain(bare, make.now - DAY * 2, SHORT)
    done = maintain(bare, make.now, SHORT)
    today = make.now.date()
    assert set(done.dropped) == {
        f"{table}_{today - DAY * days:%Y%m%d}"
        for table, days in [
            ("tool_call_ok", 2), ("tool_call_ok", 3), ("tool_call", 3), ("tool_call", 4), ("run_event", 3),
            ("run_event", 4), ("log_record", 3), ("log_record", 4),
        ]
    }  # fmt: skip
    assert _days(bare, "tool_call", today) == [-2, -1, 0, 1]


def test_one_clock_that_was_stepped_forward_empties_nothing(bare, make):
    """The database's own clock has to agree; the partitions of the wrong time are made all the same."""
    maintain(bare, make.now, SHORT)
    assert maintain(bare, make.now + DAY * 365, SHORT).dropped == ()


def test_rows_of_absurd_times_go_by_their_arrival(writer, db, make):
    old, young = (
        make.failed(started_at=make.now.replace(year=1999), received_at=make.now - DAY * days)
        for days in (40, 20)
    )
    writer.load([old, young], [], [make.log(old)])
    maintain(db.conn, make.now)
    assert db.all("SELECT reference_id FROM tool_call") == [(young.reference_id,)]
    assert db.one("SELECT count(*) FROM log_record") == 0
    assert (
        db.one("SELECT count(*) FROM reference") == 3
    )  # two outlines and the detail's row, kept 400 days
    db.check_sums = lambda: None  # 40 days late: its row is gone, its tally stays


def test_a_second_replica_leaves_the_work_to_the_first(bare, make, empty_database_url):
    with psycopg.connect(empty_database_url) as first:
        first.execute("SELECT pg_advisory_lock(%s)", [locks.MAINTENANCE])
        assert maintain(bare, make.now, SHORT) == Maintained()
        first.execute("SELECT pg_advisory_unlock(%s)", [locks.MAINTENANCE])
        assert maintain(bare, make.now, SHORT).made


def test_two_replicas_at_once_make_each_partition_once(bare, make, empty_database_url):
    start = threading.Barrier(2)

    def work(_):
        with psycopg.connect(empty_database_url) as conn:
            start.wait()
            return maintain(conn, make.now, SHORT)

    with ThreadPoolExecutor(2) as pool:
        made = [name for done in pool.map(work, range(2)) for name in done.made]
    assert len(made) == len(set(made))
    assert len(made) == sum(len(existing(bare, table)) for table in (*DAILY, *MONTHLY))


def test_the_lock_is_given_back(bare, make):
    maintain(bare, make.now, SHORT)
    bare.commit()
    # Ours alone: other tests' services hold locks on other databases of this server.
    held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
    assert bare.execute(held).fetchone() == (0,)


def test_a_busy_table_is_left_for_the_next_run_and_the_others_are_done(
    bare, make, empty_database_url, monkeypatch
):
    monkeypatch.setattr(partitions, "_TRIES", 1)
    with psycopg.connect(empty_database_url) as reader:
        reader.execute("SELECT count(*) FROM run_event")
        done = maintain(bare, make.now, SHORT)
    assert {name.rpartition("_")[0] for name in done.postponed} == {"run_event"}
    assert _days(bare, "tool_call", make.now.date()) == [-2, -1, 0, 1]
    assert {name.rpartition("_")[0] for name in maintain(bare, make.now, SHORT).made} == {
        "run_event"
    }


def test_how_far_ahead_is_that_of_the_table_that_is_worst_off(bare, make):
    maintain(bare, make.now, SHORT._replace(ahead_days=4))
    assert ahead(bare, make.now.date()) == 4
    bare.execute(f"DROP TABLE run_event_{make.now + DAY * 3:%Y%m%d}")
    assert ahead(bare, make.now.date()) == 2


def test_old_hours_of_groups_and_old_look_ups_are_pruned(connection, make):
    old, young = make.now - DAY * 401, make.now - DAY * 399
    for n, at in enumerate((old, young)):
        connection.execute("INSERT INTO error_group_tally VALUES (%s, 1, %s, 0, '\\x00')", [at, at])
        connection.execute(
            "INSERT INTO lookup_audit (looked_at, id, asked, state) VALUES (%s, gen_random_uuid(), %s, 'found')",
            [at, n],
        )
    maintain(connection, make.now)
    assert connection.execute("SELECT hour FROM error_group_tally").fetchall() == [(young,)]
    assert connection.execute("SELECT asked FROM lookup_audit").fetchall() == [("1",)]


def test_maintenance_runs_while_writers_write(writer, db, make, database_url):
    done = threading.Event()

    def upkeep():
        with psycopg.connect(database_url) as conn:
            while not done.is_set():
                maintain(conn, make.now + DAY * upkeep.day, Retention(days=7, ahead_days=7))
                upkeep.day += 1

    upkeep.day = 1
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(upkeep)
        loaded = sum(writer.load([make.ok(), make.failed()]).calls for _ in range(20))
        done.set()
        running.result()
    assert loaded == 40 == db.one("SELECT count(*) FROM tool_call_all")
