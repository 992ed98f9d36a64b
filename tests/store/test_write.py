"""One batch, one transaction: delivered any number of times, in any order, by anybody, it counts once."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import permutations

import psycopg
import pytest
from psycopg import errors

from toolfault import conventions, taxonomy
from toolfault.store import records
from toolfault.store.models import UNDATED
from toolfault.store.rows import Call, Event, Log
from toolfault.store.stage import COLUMNS
from toolfault.store.write import Writer

DAY = timedelta(days=1)


def test_rows_have_the_columns_of_their_tables():
    assert Call._fields == COLUMNS["tool_call"]
    assert Event._fields == COLUMNS["run_event"]
    assert Log._fields == COLUMNS["log_record"]
    assert set(COLUMNS["tool_call_ok"]) < set(Call._fields)


def test_a_batch_is_stored_as_it_was_given(writer, db, make):
    ok, failed = make.ok(), make.failed(possibly_twice=True, transient=True, attempts=3)
    event, log = make.event(failed, conventions.BUDGET_EXHAUSTED), make.log(failed)
    assert writer.load([ok, failed], [event], [log]) == (2, 1, 1)
    assert db.one("SELECT * FROM tool_call") == failed._replace(
        attributes={"host.name": "worker-7"}
    )
    assert db.one("SELECT * FROM tool_call_ok")[:8] == (*ok[:6], *ok[7:9])
    assert db.one("SELECT * FROM run_event") == event._replace(attributes={})
    assert db.one("SELECT * FROM log_record") == log._replace(attributes={})


def test_a_second_delivery_changes_no_row_of_any_table(writer, open_writer, db, make):
    calls, events, logs = make.batch()
    events = [
        make.event(calls[0], conventions.TOOL_DECLARED),
        make.event(calls[0], conventions.DEAD_LETTER),
    ]
    assert writer.load(calls, events, logs) == (200, 2, 50)
    before = db.state()
    for other in (writer, open_writer()):
        assert other.load(calls, events, logs) == (0, 0, 0)
        assert other.load(calls[::-1], events[::-1], logs[::-1]) == (0, 0, 0)
    assert db.state() == before


def test_of_overlapping_batches_only_the_new_rows_count(writer, db, make):
    calls, *_ = make.batch()
    assert writer.load(calls[:120]).calls == 120
    assert writer.load(calls[50:]).calls == 80


def test_a_row_is_the_same_whether_known_rows_come_with_it_or_none(writer, db, make):
    """Without one it goes straight into its table, with one by way of a temporary table."""
    ok, failed = make.ok(), make.failed()
    both = {
        way: (make.again(ok, reference_id=None), make.event(failed, conventions.TOOL_DECLARED, digest=way), make.log(failed, digest=way))
        for way in (b"straight", b"aroundit")
    }  # fmt: skip
    straight, around = ([[row] for row in rows] for rows in both.values())
    assert writer.load(*straight) == (1, 1, 1)
    assert writer.load(*(old + new for old, new in zip(straight, around, strict=True))) == (1, 1, 1)
    for table, apart in (("tool_call_ok", "trace_id span_id"), ("run_event", "digest"), ("log_record", "digest")):  # fmt: skip
        rows = db.all(f"SELECT to_jsonb({table}) - %s::text[] FROM {table}", apart.split())  # noqa: S608
        assert rows[0] == rows[1]


def test_an_ok_call_given_twice_in_one_batch_is_one_row(writer, db, make):
    call = make.ok()
    assert writer.load([call, call._replace(agent="another")]).calls == 1
    assert db.one("SELECT agent FROM tool_call_ok") == "planner"
    assert db.one("SELECT sum(calls) FROM call_total") == 1


@pytest.mark.parametrize("order", ["span event", "event span", "event", "span", "both"])
def test_span_and_event_of_a_call_make_one_row_whichever_comes_first(writer, db, make, order):
    call = make.failed()
    signals = {"span": [call], "event": [call._replace(message="from the event")]}
    signals["both"] = signals["span"] + signals["event"]
    new = [writer.load(signals[name]).calls for name in order.split()]
    assert sum(new) == 1
    kept = db.one("SELECT message FROM tool_call")
    assert (kept == "from the event") == order.startswith("event")
    assert db.one("SELECT calls FROM call_total WHERE outcome = 'failed'") == 1


def test_a_call_without_ids_of_its_trace_is_told_apart_by_its_time(writer, db, make):
    nowhere = make.failed(trace_id=bytes(16), span_id=bytes(8))
    later = nowhere._replace(started_at=nowhere.started_at + timedelta(seconds=1))
    assert writer.load([nowhere, later]).calls == 2


def test_totals_hold_counts_sums_buckets_and_the_newest_exemplar(writer, db, make):
    first = make.failed(duration_us=10_000, attempts=1, started_at=make.ago(minutes=3))
    second = make.failed(duration_us=10_001, attempts=4, started_at=make.ago(minutes=2))
    huge = make.failed(duration_us=600_000_000, attempts=13, started_at=make.ago(minutes=4))
    writer.load([first])
    writer.load([huge, second])
    assert db.one("SELECT calls, duration_us, attempts FROM call_total") == (3, 600_020_001, 18)
    assert db.one("SELECT duration_buckets FROM call_total") == [1, 1, *[0] * 12, 1]
    assert db.one("SELECT attempts_buckets FROM call_total") == [
        0,
        1,
        0,
        0,
        1,
        0,
        0,
        1,
    ]  # 0 1 2 3 5 8 12 more
    exemplar = db.one("SELECT exemplar_reference, exemplar_trace, exemplar_at FROM call_total")
    assert exemplar == (second.reference_id, second.trace_id, second.started_at)


def test_calls_without_a_code_are_counted_under_their_own_words(writer, db, make):
    cancelled = make.ok(outcome="cancelled", effect="unknown")
    writer.load([make.ok(), cancelled])
    assert db.all("SELECT outcome, code FROM call_total ORDER BY 1") == [
        ("cancelled", "CANCELLED"),
        ("ok", "OK"),
    ]


def test_late_calls_are_rows_and_tallied_but_no_totals(writer, db, make):
    """A call is late ten minutes after it ended, not after it began."""
    long = make.ok(started_at=make.ago(minutes=30), duration_us=21 * 60_000_000)
    late = make.ok(started_at=make.ago(minutes=30), duration_us=19 * 60_000_000)
    assert writer.load([long, late]).calls == 2
    assert db.one("SELECT calls, exemplar_trace FROM call_total") == (1, long.trace_id)
    assert db.all("SELECT metric, service, environment, label, amount FROM event_total") == [
        (conventions.LATE_CALLS, "desk", "prod", "", 1)
    ]
    assert db.one("SELECT sum(calls) FROM call_tally") == 2


def test_a_batch_that_fails_leaves_nothing_and_the_writer_goes_on(writer, db, make):
    good, poison = make.ok(), make.failed(code=None)
    before = db.state()
    with pytest.raises(errors.CheckViolation, match="tool_call_outcome_check"):
        writer.load([good, poison])
    assert db.state() == before
    assert writer.load([good]).calls == 1
    assert db.one("SELECT tool FROM call_total") == "book_meeting"


def test_a_label_of_a_batch_that_failed_is_not_taken_as_known(writer, db, make):
    with pytest.raises(errors.CheckViolation):
        writer.load([make.ok(), make.failed(code=None)])
    writer.load([make.failed()])
    assert db.one("SELECT tool FROM call_total") == conventions.UNDECLARED


def test_after_a_lost_connection_a_new_writer_repeats_the_batch(writer, open_writer, db, make):
    batch = make.batch(20)
    db.one("SELECT pg_terminate_backend(%s)", writer.conn.info.backend_pid)
    with pytest.raises(psycopg.OperationalError):
        writer.load(*batch)
    assert open_writer().load(*batch).calls == 20


def test_a_second_writer_on_the_same_connection_finds_its_stage_tables(writer, db, make):
    assert Writer(writer.conn, writer.slot).load([make.ok()]).calls == 1


def test_each_writer_has_the_smallest_free_slot(open_writer, db):
    first, second, third = open_writer(), open_writer(), open_writer()
    assert [first.slot, second.slot, third.slot] == [0, 1, 2]
    pid = second.conn.info.backend_pid
    second.close()
    while db.one("SELECT count(*) FROM pg_stat_activity WHERE pid = %s", pid):
        pass  # the server frees the slot when it notices
    assert open_writer().slot == 1


def test_writers_add_to_rows_of_their_own_slot(open_writer, db, make):
    for _ in range(2):
        open_writer().load([make.ok()])
    assert db.all("SELECT slot, calls FROM call_total ORDER BY slot") == [(0, 1), (1, 1)]


def test_three_writers_with_the_same_batches_in_different_orders_never_deadlock(
    open_writer, db, make
):
    batches = [make.batch(80) for _ in range(6)]
    start = threading.Barrier(3)

    def work(writer, order):
        start.wait()
        return sum(writer.load(*(part[::step] for part in batches[i])).calls for i, step in order)

    orders = [
        [(i, 1) for i in range(6)],
        [(i, -1) for i in range(6)],
        [(i, -1) for i in reversed(range(6))],
    ]
    writers = [open_writer() for _ in orders]
    with ThreadPoolExecutor(3) as pool:
        new = sum(pool.map(work, writers, orders))
    assert new == 6 * 80 == db.one("SELECT count(*) FROM tool_call_all")
    assert [writer.retries for writer in writers] == [0, 0, 0]
    announced = "SELECT sum(amount) FROM event_total WHERE metric = %s"
    assert db.one(announced, conventions.ERROR_GROUPS_NEW) == db.one(
        "SELECT count(*) FROM error_group"
    )


def test_a_deadlock_with_a_stranger_is_tried_again(writer, db, make, database_url):
    """The stranger takes rows of the totals in another order than writers do."""
    call = make.failed()
    writer.load([call])
    with psycopg.connect(database_url) as stranger, ThreadPoolExecutor(1) as pool:
        stranger.execute(
            "SET deadlock_timeout = '10s'"
        )  # so that the writer is the one that gives way
        stranger.execute("SELECT FROM call_total FOR UPDATE")
        load = pool.submit(writer.load, [make.again(call)])
        blocked = (
            "SELECT count(*) FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'"
        )
        while db.one(blocked, writer.conn.info.backend_pid) == 0:
            assert not load.done()
        stranger.execute("UPDATE error_group_tally SET calls = calls")
        stranger.commit()
        assert load.result().calls == 1
    assert writer.retries == 1


# --- times that no partition has room for


@pytest.mark.parametrize("outcome", ["ok", "failed"])
@pytest.mark.parametrize("at", [DAY * 3, -DAY * 900, "1970"], ids=str)
def test_an_absurd_time_is_kept_beside_the_key_and_delivered_twice_is_one_row(
    writer, db, make, outcome, at
):
    started = datetime(1970, 1, 1, tzinfo=UTC) if at == "1970" else make.now + at
    call = getattr(make, outcome)(started_at=started)
    assert [writer.load([call]).calls, writer.load([call]).calls] == [1, 0]
    assert db.one("SELECT started_at, told_at FROM tool_call_all") == (UNDATED, started)


def test_events_and_logs_of_absurd_times_are_told_apart_by_their_digest(writer, db, make):
    call = make.failed(started_at=make.now + DAY * 3)
    event, log = make.event(call, conventions.BUDGET_EXHAUSTED), make.log(call)
    other = event._replace(digest=b"another!")
    assert writer.load([], [event, other], [log]) == (0, 2, 1)
    assert writer.load([], [other, event], [log]) == (0, 0, 0)


def test_what_came_too_early_is_still_known_when_its_time_has_come(writer, db, make, monkeypatch):
    calls = [make.ok(started_at=make.now + DAY * 3), make.failed(started_at=make.now + DAY * 3)]
    event, log = make.event(calls[1], conventions.BUDGET_EXHAUSTED), make.log(calls[1])
    assert writer.load(calls, [event], [log]) == (2, 1, 1)
    monkeypatch.setattr(records, "_FUTURE", DAY * 5)  # as if two days had passed
    assert writer.load(calls, [event], [log]) == (0, 0, 0)
    fresh = event._replace(digest=b"another!")
    assert writer.load([make.ok(started_at=make.now + DAY * 3)], [fresh]) == (1, 1, 0)
    assert db.one("SELECT count(*) FROM run_event WHERE occurred_at = %s", UNDATED) == 1


def test_a_partition_may_be_dropped_under_a_running_writer(writer, db, make):
    old = make.ago(days=7)
    assert writer.load([make.failed(started_at=old)]).calls == 1
    db.conn.execute("DELETE FROM call_tally")  # their rows go with the partition
    db.conn.execute("DELETE FROM error_group_tally")
    db.conn.execute("UPDATE event_total SET amount = 0")
    db.conn.execute(f"DROP TABLE tool_call_{old:%Y%m%d}")
    assert writer.load([make.failed(started_at=old)]).calls == 1
    assert db.one("SELECT started_at, told_at FROM tool_call") == (UNDATED, old)
    assert writer.retries == 1


def test_a_gap_between_partitions_is_as_good_as_none(open_writer, db, make):
    db.conn.execute(f"DROP TABLE tool_call_{make.ago(days=3):%Y%m%d}")
    writer = open_writer()
    assert (
        writer.load(
            [make.failed(started_at=make.ago(days=3)), make.failed(started_at=make.ago(days=5))]
        ).calls
        == 2
    )
    assert db.one("SELECT count(*) FROM tool_call WHERE started_at = %s", UNDATED) == 2


def test_a_writer_that_runs_for_weeks_finds_new_partitions(writer, db, make, monkeypatch):
    for table in ("tool_call", "tool_call_ok"):
        db.conn.execute(f"DROP TABLE {table}_{make.now:%Y%m%d}")
    bounds = records.Bounds(writer.conn)
    bounds.refresh(make.now)
    low, high = bounds.times("tool_call", make.now)
    assert low == high
    day = f"{make.now:%Y-%m-%d}", f"{make.now + DAY:%Y-%m-%d}"
    db.conn.execute(
        f"CREATE TABLE tool_call_{make.now:%Y%m%d} PARTITION OF tool_call FOR VALUES FROM ('{day[0]}') TO ('{day[1]}')"
    )
    bounds.refresh(make.now + timedelta(minutes=61))
    assert bounds.times("tool_call", make.now)[1] == make.now + DAY


# --- declarations, dead letters and the other totals


def test_a_declared_tool_starts_with_a_zero_for_every_way_to_end(writer, db, make):
    declared = make.event(
        make.ok(tool="charge"), conventions.TOOL_DECLARED, attributes='{"owner": "billing"}'
    )
    writer.load([], [declared])
    rows = db.all("SELECT outcome, code FROM call_total WHERE tool = 'charge' AND calls = 0")
    assert sorted(rows) == sorted(taxonomy.PAIRS)
    assert db.one("SELECT declared ->> 'owner', versions FROM tool_catalog") == (
        "billing",
        ["1.4.2"],
    )


def test_the_catalogue_keeps_the_newest_declaration_and_every_version(writer, db, make):
    new = make.ok(started_at=make.ago(minutes=1), version="2")
    old = make.ok(started_at=make.ago(minutes=5), version="1")
    for call, owner in ((new, "b"), (old, "a")):
        writer.load(
            [], [make.event(call, conventions.TOOL_DECLARED, attributes=f'{{"owner": "{owner}"}}')]
        )
    row = db.one("SELECT first_seen, last_seen, versions, declared ->> 'owner' FROM tool_catalog")
    assert row == (old.started_at, new.started_at, ["2", "1"], "b")


def test_a_model_step_counts_its_attempts_errors_and_exhaustion(writer, db, make):
    call = make.ok()
    steps = [("ok", 1), ("error", 1), ("exhausted", 3)]
    events = [
        make.event(
            call,
            conventions.MODEL_CALL,
            label="m1",
            outcome=outcome,
            amount=amount,
            digest=outcome.ljust(8)[:8].encode(),
        )
        for outcome, amount in steps
    ]
    writer.load([], events)
    assert dict(db.all("SELECT metric, amount FROM event_total WHERE label = 'm1'")) == {
        conventions.MODEL_CALLS: 3,
        conventions.MODEL_ATTEMPTS: 5,
        conventions.MODEL_ERRORS: 2,
        conventions.MODEL_RETRIES_EXHAUSTED: 1,
    }


def test_dropped_telemetry_counts_the_records_that_were_dropped(writer, db, make):
    writer.load([], [make.event(make.ok(), conventions.TELEMETRY_DROPPED, amount=7, label=None)])
    row = db.one("SELECT metric, service, environment, label, amount FROM event_total")
    assert row == (conventions.TELEMETRY_DROPPED_TOTAL, "desk", "prod", "", 7)


def test_a_dead_letter_waits_once_however_often_it_is_delivered(writer, db, make):
    letter = make.event(make.failed(), conventions.DEAD_LETTER, attributes='{"arguments": "x"}')
    writer.load([], [letter])
    writer.load([], [letter])
    rows = db.all(
        "SELECT tool, reference_id, acked_at, attributes ->> 'arguments' FROM dead_letter"
    )
    assert rows == [("book_meeting", letter.reference_id, None, "x")]


def test_events_that_nobody_counts_are_stored_all_the_same(writer, db, make):
    call = make.ok()
    for first, second in permutations([conventions.MODEL_ERROR, conventions.MODEL_RETRY]):
        writer.load([], [make.event(call, first), make.event(call, second)])
    assert db.one("SELECT count(*) FROM run_event") == 2
    assert db.one("SELECT count(*) FROM event_total") == 0
