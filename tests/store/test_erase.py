import pytest

from toolfault import conventions
from toolfault.store.erase import erase_conversation
from toolfault.store.rebase import rebase

DETAILS = ("tool_call", "tool_call_ok", "run_event", "log_record", "reference", "dead_letter")


def _everything(make, **changes):
    """An ok call, a failed one, an event, a dead letter, a declaration-free log and its detail, in one trace."""
    failed = make.failed(**changes)
    ok = make.ok(trace_id=failed.trace_id, conversation_id=failed.conversation_id)
    events = [
        make.event(failed, conventions.BUDGET_EXHAUSTED, conversation_id=failed.conversation_id),
        make.event(failed, conventions.DEAD_LETTER),  # says no conversation; its trace does
    ]
    return [ok, failed], events, [make.log(failed), make.log(failed, "application")]


def _left(db, reference_id):
    tables = ("tool_call", "run_event", "log_record", "reference", "dead_letter")
    return {
        table: db.one(f"SELECT count(*) FROM {table} WHERE reference_id = %s", reference_id)  # noqa: S608
        for table in tables
    }


@pytest.fixture
def db_without_sums(database_url, db):
    """Erasing takes rows from under the totals."""
    db.check_sums = lambda: None
    return db


def test_details_and_outlines_of_the_conversation_go(writer, db_without_sums, make):
    writer.load(*_everything(make))
    assert erase_conversation(db_without_sums.conn, "c-1") == (2, 2, 2, 2, 1)
    counts = {table: db_without_sums.one(f"SELECT count(*) FROM {table}") for table in DETAILS}  # noqa: S608
    assert counts == dict.fromkeys(DETAILS, 0)


def test_what_was_counted_stays_counted_without_pointing_at_what_is_gone(
    writer, db_without_sums, make
):
    writer.load(*_everything(make))
    erase_conversation(db_without_sums.conn, "c-1")
    assert db_without_sums.one("SELECT sum(calls) FROM call_total") == 2
    assert db_without_sums.one("SELECT sum(calls) FROM call_tally") == 2
    exemplars = db_without_sums.all(
        "SELECT DISTINCT exemplar_reference, exemplar_trace FROM call_total"
    )
    assert exemplars == [(None, None)]
    assert db_without_sums.all("SELECT sample_reference_id FROM error_group") == [(None,)]


def test_another_conversation_keeps_everything_also_in_the_same_trace(
    writer, db_without_sums, make
):
    ours = _everything(make)
    theirs = _everything(make, conversation_id="c-2", trace_id=ours[0][0].trace_id)
    theirs[1][1] = theirs[1][1]._replace(conversation_id="c-2")
    writer.load(*ours)
    writer.load(*theirs)
    before = _left(db_without_sums, theirs[0][1].reference_id)
    assert before == {
        "tool_call": 1,
        "run_event": 2,
        "log_record": 2,
        "reference": 2,
        "dead_letter": 1,
    }
    erase_conversation(db_without_sums.conn, "c-1")
    assert _left(db_without_sums, theirs[0][1].reference_id) == before
    assert set(_left(db_without_sums, ours[0][1].reference_id).values()) == {0}


def test_records_without_a_trace_are_not_taken_for_one_trace(writer, db_without_sums, make):
    mine = make.failed(trace_id=bytes(16), span_id=bytes(8))
    other = make.failed(trace_id=bytes(16), conversation_id=None, started_at=make.ago(minutes=1))
    writer.load([mine, other], [], [make.log(mine), make.log(other)])
    assert erase_conversation(db_without_sums.conn, "c-1") == (1, 0, 1, 1, 0)
    assert db_without_sums.all("SELECT reference_id FROM log_record") == [(other.reference_id,)]


def test_an_unknown_conversation_erases_nothing(writer, db, make):
    writer.load(*_everything(make))
    assert erase_conversation(db.conn, "c-9") == (0, 0, 0, 0, 0)


def test_a_rebase_restarts_every_series_at_zero_and_keeps_the_series(writer, db_without_sums, make):
    failed = make.failed(started_at=make.ago(hours=1))
    writer.load(
        [make.ok(), make.failed(), failed], [make.event(failed, conventions.BUDGET_EXHAUSTED)]
    )
    assert rebase(db_without_sums.conn) == 5  # ok and failed; late, budget exhausted, a new group
    query = "SELECT DISTINCT calls, duration_us, attempts, exemplar_reference FROM call_total"
    assert db_without_sums.all(query) == [(0, 0, 0, None)]
    assert db_without_sums.all(
        "SELECT DISTINCT duration_buckets, attempts_buckets FROM call_total"
    ) == [([0] * 15, [0] * 8)]
    assert db_without_sums.all("SELECT DISTINCT amount FROM event_total") == [(0,)]
    writer.load([make.ok()])
    assert db_without_sums.one(
        "SELECT calls, duration_us FROM call_total WHERE outcome = 'ok'"
    ) == (1, 25_000)


def test_a_dead_letter_left_outside_of_every_span_goes_with_its_conversation(
    writer, db_without_sums, make
):
    def letter(conversation, **place):
        named = f'{{"gen_ai.conversation.id": "{conversation}", "toolfault.payload": {{"a": 1}}}}'
        return make.event(
            make.failed(**place), conventions.DEAD_LETTER, attributes=named,
            conversation_id=conversation, reference_id=None, digest=conversation.encode(),
        )  # fmt: skip

    nowhere = {"trace_id": bytes(16), "span_id": bytes(8)}
    mine = make.failed()
    other = letter("c-3", **nowhere)
    shared = letter("c-2", trace_id=mine.trace_id)
    writer.load([mine], [letter("c-1", **nowhere), other, shared])

    assert erase_conversation(db_without_sums.conn, "c-1").dead_letters == 1
    left = db_without_sums.all(
        "SELECT attributes ->> 'gen_ai.conversation.id' FROM dead_letter ORDER BY 1"
    )
    assert left == [("c-2",), ("c-3",)]
