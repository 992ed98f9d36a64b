"""The reasons a tool gives."""

from datetime import UTC, datetime

from toolfault.store.queries.tool_errors import Reason
from toolfault.web import reasons

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def row(reason, calls, *, code="INTERNAL", outcome="failed", followed=0, followed_ok=0):
    return Reason(reason, outcome, code, "none", calls, NOON, followed, followed_ok)


def test_counts_are_exact_where_every_call_was_read():
    (given,) = reasons.given([row("broken", 40)], {"INTERNAL": 40}, ())

    assert (given.about, given.calls) == ("", 40)


def test_counts_follow_from_the_newest_where_there_are_more():
    rows = [row("broken", 225), row("slow", 75), row("taken", 299, code="CONFLICT")]
    given = reasons.given(rows, {"INTERNAL": 8000, "CONFLICT": 299}, ())

    assert [(one.reason, one.about, one.calls) for one in given] == [
        ("broken", "about ", 6000),
        ("slow", "about ", 2000),
        ("taken", "", 299),
    ]


def test_a_tool_that_is_not_counted_by_its_name_has_at_least_what_was_read():
    (given,) = reasons.given([row("broken", 300)], {}, ())

    assert (given.about, given.calls) == ("over ", 300)


def test_what_nobody_declared_is_marked_unless_it_is_the_librarys_own():
    names = ("slot_taken", "surprise", "unmapped_failure", "timed_out", "rejected")
    given = reasons.given([row(name, 1) for name in names], {}, {"slot_taken"})

    assert [one.declared for one in given] == [
        "yes",
        "no",
        "no: map it",
        "not needed",
        "not needed",
    ]


def test_invalid_calls_that_were_fixed_are_counted_among_those_that_were_followed():
    rows = [
        row("bad_date", 9, code="INVALID_ARGUMENT", outcome="invalid", followed=5, followed_ok=4),
        row("bad_slot", 3, code="INVALID_ARGUMENT", outcome="invalid", followed=1),
        row("broken", 9, followed=7, followed_ok=7),
    ]

    assert reasons.fixed(reasons.given(rows, {}, ()), "invalid") == (6, 4)
