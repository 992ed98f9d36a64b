"""What the newest calls of a group did, and what came after them."""

from datetime import UTC, datetime, timedelta

from toolfault.store.queries.groups import GroupCall, Next
from toolfault.web import group_calls

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def made(reference, minutes=0, conversation="c-1", **fields):
    at = NOON - timedelta(minutes=minutes)
    call = GroupCall(
        received_at=at, started_at=at, trace_id=bytes(16), reference_id=reference,
        conversation_id=conversation, environment="production", outcome="failed",
        action="stop_and_tell_user", effect="none", attempts=1, possibly_twice=False,
        agent="planner", version="2.14.0", model=None,
    )  # fmt: skip
    return call._replace(**fields)


def picked(calls, first=None):
    return [(one.reference, one.why) for one in group_calls.samples(calls, first)]


def test_samples_are_chosen_for_difference_each_once():
    calls = [
        made("newest"),
        made("alike", 1, "c-2"),
        made("again", 2, "c-2", effect="unknown", attempts=2),
        made("unsure", 3, "c-3", effect="unknown"),
        made("desk", 4, "c-4", agent="front-desk"),
        made("old", 5, "c-5", version="2.13.9"),
        made("trial", 6, "c-6", environment="staging"),
    ]

    assert picked(calls, made("first", 900, "c-9")) == [
        ("newest", "newest"),
        ("first", "first that is kept"),
        ("again", "may have taken effect, after a retry"),
        ("alike", "met twice in one conversation"),
        ("desk", "another agent"),
        ("old", "another version"),
        ("trial", "another environment"),
    ]


def test_a_group_of_one_call_has_one_sample():
    assert picked([made("only")], made("only")) == [("only", "newest")]
    assert picked([made(None)], made(None)) == []


def listed(calls, *after):
    met = group_calls.conversations(calls)
    for step in after:
        next(one for one in met if one.id == step.conversation_id).after.append(step)
    kept_since = NOON - timedelta(days=2)
    items = group_calls.affected(met, "book_meeting", ok_kept_since=kept_since)
    return [(one.conversation_id, one.possibly_double, one.afterwards) for one in items]


def test_conversations_with_a_possible_double_effect_come_first():
    calls = [
        made("a", 1, "c-nothing"),
        made("b", 2, "c-once", effect="unknown"),
        made("c", 3, "c-won", effect="unknown"),
        made("d", 4, "c-two", effect="unknown"),
        made("e", 5, "c-two", effect="unknown"),
        made("f", 6, "c-retried", effect="applied", possibly_twice=True),
    ]
    after = [
        Next("c-won", "production", "get_order", "ok", "none"),
        Next("c-won", "production", "book_meeting", "ok", "applied"),
        Next("c-once", "production", "book_meeting", "invalid", "none"),
        Next("c-nothing", "production", "get_order", "ok", "applied"),
    ]

    assert listed(calls, *after) == [
        ("c-retried", True, "no call since"),
        ("c-two", True, "no call since"),
        ("c-won", True, "called book_meeting again: ok"),
        ("c-once", False, "called book_meeting again: invalid"),
        ("c-nothing", False, "went on with get_order: ok"),
    ]


def test_what_came_after_is_not_known_where_successful_calls_are_kept_no_longer():
    assert listed([made("a", 60 * 72)]) == [("c-1", False, None)]


def test_the_same_conversation_id_in_two_environments_is_two_conversations():
    calls = [made("a"), made("b", environment="staging")]

    assert [one.environment for one in group_calls.conversations(calls)] == [
        "production",
        "staging",
    ]
