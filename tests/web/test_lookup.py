"""From what a person pasted to an answer, in every state."""

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from toolfault import conventions as names
from toolfault import reference
from toolfault.store import partitions
from toolfault.web.known import gather
from toolfault.web.lookup import Viewer, lookup

NOON = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)


def days_ago(days):
    return (datetime.now(UTC) - timedelta(days=days)).date()


def test_a_stored_reference_is_found(store, make, conn):
    call = make.call()
    store([call])
    answer = lookup(conn, call.reference_id)
    assert (answer.state, answer.reference, len(answer.matches)) == ("found", call.reference_id, 1)
    match = answer.matches[0]
    assert (match.tool, match.outcome, match.code, match.attempts, match.effect) == (
        "book_meeting",
        "failed",
        "INTERNAL",
        1,
        "unknown",
    )
    assert match.duration == 2.6


@pytest.mark.parametrize(
    "written",
    [
        lambda ref: ref.lower(),
        lambda ref: ref.replace("-", ""),
        lambda ref: ref.replace("-", " "),
        lambda ref: ref.replace("0", "O").replace("1", "l"),
        lambda ref: f"  {ref}\n",
        lambda ref: f"it said: something broke (ref {ref}), what now? I need the meeting on Monday",
        lambda ref: f'{{"status": "error", "error": {{"code": "INTERNAL", "ref": "{ref}"}}}}',
    ],
)
def test_reading_forgives_how_it_was_written(store, make, conn, written):
    call = make.call()
    store([call])
    answer = lookup(conn, written(call.reference_id))
    assert (answer.state, answer.reference) == ("found", call.reference_id)


def test_a_foreign_reference_is_kept_as_it_is_and_may_name_several_calls(store, make, conn):
    older = make.call(reference_id="deadbeef", tool="older")
    newer = make.call(
        reference_id="deadbeef", tool="newer", started_at=older.started_at + timedelta(seconds=5)
    )
    store([older, newer])
    answer = lookup(conn, "deadbeef")
    assert [match.tool for match in answer.matches] == ["newer", "older"]
    assert lookup(conn, "DEADBEEF").state == "unknown"


def test_what_was_typed_wins_over_its_canonical_form(store, make, conn):
    ours = make.reference()
    foreign = ours.replace("-", "").lower()
    store(
        [make.call(reference_id=ours, tool="ours"), make.call(reference_id=foreign, tool="foreign")]
    )
    assert lookup(conn, foreign).matches[0].tool == "foreign"
    assert lookup(conn, ours).matches[0].tool == "ours"


def test_one_wrong_symbol_suggests_what_is_stored_newest_first(store, make, conn):
    call = make.call()
    store([call])
    last = "0" if call.reference_id[-1] != "0" else "1"
    answer = lookup(conn, call.reference_id[:-1] + last)
    assert answer.state == "mistyped"
    assert [one.reference for one in answer.suggestions] == [call.reference_id]
    assert answer.suggestions[0].tool == "book_meeting"
    assert (
        answer.suggestions[0].difference
        == f"character 12 differs: {call.reference_id[-1]}, not {last}"
    )


def test_swapped_missing_and_additional_symbols_suggest_too(store, make, conn):
    known = reference.new(random=0x123456789AB, day=days_ago(1))
    store([make.call(reference_id=known)])
    symbols = known.replace("-", "")
    assert symbols[0] != symbols[1]
    for typed in (symbols[1] + symbols[0] + symbols[2:], symbols[1:], symbols + "Z"):
        answer = lookup(conn, typed)
        assert (answer.state, [one.reference for one in answer.suggestions]) == (
            "mistyped",
            [known],
        )


def test_a_mistyped_reference_without_neighbours_still_says_what_to_do(conn):
    answer = lookup(conn, "938N-KRKA-S18Q")
    assert (answer.state, answer.suggestions) == ("mistyped", ())
    assert "copy" in answer.next_step


def test_nothing_of_today_may_still_be_on_its_way(conn):
    answer = lookup(conn, reference.new(day=NOON.date()), now=NOON)
    midnight = NOON.replace(hour=0) + timedelta(days=1)
    assert (answer.state, answer.look_again_at) == ("pending", midnight + timedelta(hours=1))


@pytest.mark.parametrize(("minutes", "state"), [(59, "pending"), (61, "not_received")])
def test_yesterdays_reference_is_waited_for_until_one(conn, minutes, state):
    now = NOON.replace(hour=0) + timedelta(minutes=minutes)
    answer = lookup(conn, reference.new(day=now.date() - timedelta(days=1)), now=now)
    assert answer.state == state


def test_not_received_names_the_records_dropped_that_day(store, make, conn):
    day = NOON - timedelta(days=2)
    store(events=[make.event(names.TELEMETRY_DROPPED, amount=17, occurred_at=day, received_at=day)])
    answer = lookup(conn, reference.new(day=day.date()))
    assert (answer.state, answer.dropped) == ("not_received", 17)
    assert "17 dropped records" in answer.explanation
    elsewhere = lookup(conn, answer.reference, viewer=Viewer(frozenset({"orders-agent"})))
    assert elsewhere.dropped == 0


def test_a_day_that_is_still_to_come_is_unknown_tomorrow_is_not(conn):
    today = NOON.date()
    assert lookup(conn, reference.new(day=today + timedelta(days=1)), now=NOON).state == "pending"
    assert lookup(conn, reference.new(day=today + timedelta(days=2)), now=NOON).state == "unknown"


@pytest.mark.parametrize(
    "text", ["", "   ", "hello", "\x00", "a" * 100_000, "\u202e", "//evil.example", "%s"]
)
def test_anything_else_is_unknown(conn, text):
    assert lookup(conn, text).state == "unknown"


def test_the_first_stored_reference_of_a_text_is_answered_and_the_others_are_named(
    store, make, conn
):
    stored, also_stored, lost = make.call(), make.call(), make.reference()
    store([stored, also_stored])
    answer = lookup(
        conn, f"{lost}, {stored.reference_id} and {also_stored.reference_id}, what now?"
    )
    assert (answer.state, answer.reference) == ("found", stored.reference_id)
    assert answer.others == (lost, also_stored.reference_id)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("938N-KRKA", "a part of a reference: it has 8 characters"),
        ("938N KRKA S1", "a part of a reference: it has 10 characters"),
        ("938N-KRKA-S18P-77", "too long: it has 14 characters"),
        ("hello", "does not have the form of a reference"),
    ],
)
def test_half_a_reference_is_told_how_long_a_whole_one_is(conn, text, told):
    answer = lookup(conn, text)
    assert answer.state == "unknown"
    assert told in answer.explanation
    assert "twelve characters, 4-4-4" in answer.next_step


def test_the_example_of_the_documentation_is_told_from_a_reference_that_got_lost(conn):
    for now in (datetime(2026, 11, 30, 12, tzinfo=UTC), datetime(2027, 11, 30, 12, tzinfo=UTC)):
        answer = lookup(conn, "938N-KRKA-S18P", now=now)
        assert answer.title == "This is the example of the documentation"
        assert "toolfault demo" in answer.next_step
        assert (answer.state, answer.look_again_at) == ("not_received", None)
        assert answer.tell_user == (
            "That is the example of our documentation, not a reference of your own. "
            "Could you copy yours from the chat?"
        )


def test_an_old_reference_has_expired_and_its_outline_is_shown(store, make, conn, connection):
    day = days_ago(40)
    call = make.call(reference_id=reference.new(day=day), attempts=2, effect="none")
    store([call])
    long_ago = call.started_at - timedelta(days=40)
    connection.execute("DELETE FROM tool_call")
    connection.execute(
        "UPDATE reference SET started_at = %s, received_at = %s", (long_ago, long_ago)
    )
    connection.commit()
    answer = lookup(conn, call.reference_id)
    assert (answer.state, answer.issued_on) == ("expired", day)
    match = answer.matches[0]
    assert (match.tool, match.outcome, match.attempts, match.duration) == (
        "book_meeting",
        "failed",
        2,
        None,
    )
    assert match.words.effect == "No, nothing changed"


def test_an_old_reference_without_an_outline_has_expired_too(conn):
    answer = lookup(conn, reference.new(day=days_ago(40)))
    assert (answer.state, answer.matches) == ("expired", ())
    assert "probably never received here" in answer.explanation
    assert "I could not find anything under it" in answer.tell_user
    assert "deleted" not in answer.tell_user
    older = lookup(conn, reference.new(day=days_ago(401)))
    assert (older.state, older.matches) == ("expired", ())
    assert older.explanation == "Details are kept for 30 days. Nothing of it is kept any more."
    assert "its details have been deleted" in older.tell_user


def test_a_call_whose_details_are_gone_early_still_shows_its_outline(store, make, conn, connection):
    call = make.call()
    store([call])
    connection.execute("DELETE FROM tool_call")
    connection.commit()
    answer = lookup(conn, call.reference_id)
    assert (answer.state, answer.matches[0].outcome, answer.matches[0].envelope) == (
        "found",
        "failed",
        None,
    )


def test_a_partial_signal_is_pending_for_an_hour_and_then_of_unknown_outcome(store, make, conn):
    call = make.call()
    store(logs=[make.log_of(call, names.EXCEPTION, exception_type="KeyError", body="'a'")])
    answer = lookup(conn, call.reference_id)
    assert (answer.state, answer.look_again_at) == (
        "pending",
        call.received_at + timedelta(hours=1),
    )
    later = lookup(conn, call.reference_id, now=call.received_at + timedelta(minutes=61))
    assert (later.state, later.matches[0].outcome) == ("found", None)
    assert later.matches[0].exceptions[0].type == "KeyError"
    assert later.matches[0].words.effect == "Not known"
    assert "do not try again" in later.matches[0].words.tell_user


def test_a_partial_signal_hides_behind_the_call_it_belongs_to(store, make, conn):
    call = make.call()
    store([call], logs=[make.log_of(call, names.EXCEPTION, exception_type="KeyError", body="'a'")])
    answer = lookup(conn, call.reference_id)
    assert [match.outcome for match in answer.matches] == ["failed"]
    assert answer.matches[0].exceptions[0].message == "'a'"


def test_a_call_with_a_time_no_partition_has_room_for_is_found(store, make, conn):
    stuck = datetime(1999, 12, 31, tzinfo=UTC)
    call = make.call(started_at=stuck)
    store([call])
    answer = lookup(conn, call.reference_id)
    assert (answer.state, answer.matches[0].started_at) == ("found", stuck)


def test_out_of_scope_looks_exactly_like_not_stored(store, make, conn):
    call = make.call()
    outsider = Viewer(frozenset({"orders-agent"}), detail=True)
    typo = call.reference_id[:-1] + ("0" if call.reference_id[-1] != "0" else "1")
    now = datetime.now(UTC)
    before = [lookup(conn, text, viewer=outsider, now=now) for text in (call.reference_id, typo)]
    store([call], logs=[make.log_of(call, names.EXCEPTION, body="secret")])
    after = [lookup(conn, text, viewer=outsider, now=now) for text in (call.reference_id, typo)]
    assert before == after
    insider = Viewer(frozenset({"calendar-agent"}))
    assert lookup(conn, call.reference_id, viewer=insider).state == "found"


def test_support_sees_no_exception_detail(store, make, conn):
    call = make.call()
    store([call], logs=[make.log_of(call, names.EXCEPTION, body="'a'", stacktrace="Traceback")])
    match = lookup(conn, call.reference_id, viewer=Viewer(detail=False)).matches[0]
    assert (match.exceptions, match.log_lines, match.detail_withheld) == ((), (), True)


def test_the_card_holds_the_conversation_the_group_and_what_the_model_was_told(store, make, conn):
    started = datetime.now(UTC) - timedelta(minutes=5)
    attributes = {
        names.FIELD: "date",
        names.RETRYABLE: False,
        names.BUDGET_FAILURES: 1,
        names.BUDGET_LIMIT: 2,
        names.ATTEMPT_LIST: (
            '[{"number": 1, "start": 1000000000, "end": 1200000000, "code": "UNAVAILABLE"},'
            ' {"number": 2, "start": 2200000000, "end": 3600000000, "waited": 1.0, "code": "INTERNAL"}]'
        ),
    }
    this = make.call(started_at=started, attributes=attributes, attempts=2)
    earlier = make.ok(started_at=started - timedelta(seconds=30), tool="list_free_slots")
    later = make.call(started_at=started + timedelta(seconds=30))
    elsewhere = make.call(conversation_id="c-2")
    store([this, earlier, later, elsewhere], [make.declared()])
    match = lookup(conn, this.reference_id).matches[0]
    assert [(step.tool, step.outcome, step.this_call) for step in match.conversation] == [
        ("list_free_slots", "ok", False),
        ("book_meeting", "failed", True),
        ("book_meeting", "failed", False),
    ]
    assert [(one.number, one.offset, one.duration, one.waited) for one in match.attempt_list] == [
        (1, 0.0, 0.2, 0.0),
        (2, 1.2, 1.4, 1.0),
    ]
    assert match.envelope == {
        "status": "error",
        "error": {
            "code": "INTERNAL",
            "reason": "unmapped_failure",
            "field": "date",
            "message": "The tool failed unexpectedly.",
            "action": "stop_and_tell_user",
            "retryable": False,
            "ref": this.reference_id,
        },
    }
    assert (match.group.calls_last_day, match.group.status, sum(match.group.trend)) == (
        3,
        "open",
        3,
    )
    assert (match.words.owner, match.words.owner_detail) == ("Calendar tools", "#calendar-oncall")
    assert (match.writes, match.idempotent) == (True, False)
    assert match.runbook == "https://runbooks.example.com/book_meeting"


def test_an_undeclared_tool_has_no_known_owner_and_says_why(store, make, conn):
    call = make.call()
    store([call])
    words = lookup(conn, call.reference_id).matches[0].words
    assert words.owner == "Not known"
    assert "has not declared itself" in words.owner_detail


def test_a_dead_letter_without_a_trace_adds_no_second_call(store, make, conn):
    call = make.call()
    store(
        [call],
        [make.event(names.DEAD_LETTER, label="book_meeting", reference_id=call.reference_id)],
    )
    assert [match.outcome for match in lookup(conn, call.reference_id).matches] == ["failed"]


def test_a_declined_answer_is_shown_as_the_data_block_the_model_read(store, make, conn):
    call = make.call(
        outcome="declined",
        code="CONFLICT",
        reason="slot_taken",
        action="none",
        effect="none",
        message="Taken.",
    )
    store([call])
    assert lookup(conn, call.reference_id).matches[0].envelope == {
        "status": "declined",
        "output": '<untrusted-data source="tool_refusal">\nslot_taken: Taken.\n</untrusted-data>',
    }


def test_an_envelope_holds_the_reference_only_where_the_user_is_to_hear_it(store, make, conn):
    call = make.call(
        code="UNAVAILABLE", action="retry_later", effect="none", message="Not available."
    )
    foreign = make.call(message=None)
    store([call, foreign])
    assert lookup(conn, call.reference_id).matches[0].envelope == {
        "status": "error",
        "error": {
            "code": "UNAVAILABLE",
            "reason": "unmapped_failure",
            "message": "Not available.",
            "action": "retry_later",
            "retryable": True,
        },
    }
    assert lookup(conn, foreign.reference_id).matches[0].envelope is None


def test_the_card_counts_the_calls_like_this_one(store, make, conn):
    first = make.call()
    store([first])
    words = lookup(conn, first.reference_id).matches[0].words
    assert words.incident_detail == "It is the only call of its kind so far."

    store([make.call(started_at=first.started_at + timedelta(seconds=1))])
    words = lookup(conn, first.reference_id).matches[0].words
    assert words.incident_detail == (
        "2 calls like this one in the last 24 hours, 2 in the last hour. Nobody has closed it."
    )


@pytest.fixture
def partitions_again(database_url):
    yield
    with psycopg.connect(database_url) as conn:
        partitions.maintain(conn, datetime.now(UTC))


@pytest.mark.usefixtures("partitions_again")
def test_a_partition_dropped_during_a_look_up_does_no_harm(
    store, make, conn, database_url, monkeypatch
):
    """Between finding out which partitions there are and reading them."""
    call = make.call()
    store([call])
    tomorrow = datetime.now(UTC) + timedelta(days=1)

    def dropped_before(conn, rows, days, asked):
        assert f"tool_call_{tomorrow:%Y%m%d}" in days.table("tool_call", tomorrow, tomorrow)
        with psycopg.connect(database_url) as other:
            other.execute(f"DROP TABLE tool_call_{tomorrow:%Y%m%d}")
        return gather(conn, rows, days, asked)

    monkeypatch.setattr("toolfault.web.lookup.gather", dropped_before)
    answer = lookup(conn, call.reference_id)
    assert (answer.state, len(answer.matches[0].conversation)) == ("found", 1)


def test_a_wait_is_told_only_where_the_model_may_wait(store, make, conn):
    waits = {names.RETRY_AFTER: 60.0}
    may = make.call(action="retry_later", code="UNAVAILABLE", attributes=waits)
    may_not = make.call(action="stop_and_tell_user", code="UNAVAILABLE", attributes=waits)
    store([may, may_not])
    told = [lookup(conn, one.reference_id).matches[0].envelope["error"] for one in (may, may_not)]
    assert [error.get("retry_after") for error in told] == [60.0, None]
