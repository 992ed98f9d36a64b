"""Tables in terminals of several widths: what a reader copies is in one piece."""

import pytest

from toolfault.cli import dead_letters, lists, tables

AT = "2026-11-30T14:00:00.123456Z"
ERROR = {
    "at": AT, "tool": "book_meeting", "outcome": "timed_out", "code": "UNAVAILABLE",
    "reason": "calendar_is_down", "field": None, "effect": "unknown",
    "reference": "938N-KRKA-S18P",
}  # fmt: skip
INVALID = ERROR | {
    "outcome": "invalid", "code": "INVALID_ARGUMENT", "reason": "date_not_iso", "field": "attendees.0.date",
    "effect": "none",
}  # fmt: skip
GROUP = {
    "last_seen": AT, "title": "KeyError in calendar_tools.google:parse_event", "status": "open",
    "calls": 12, "calls_last_hour": 3, "sample_reference": "938N-KRKA-S18P",
}  # fmt: skip
LETTER = {
    "at": AT, "service": "calendar-agent", "tool": "refund_order", "reference": "938N-KRKA-S18P",
    "id": "0123456789abcdef0123456789abcdef",
}  # fmt: skip


@pytest.fixture
def printed(capsys, monkeypatch):
    """Lines of a list of one item, in a terminal of some width."""

    def of(item, columns, spare, width):
        monkeypatch.setenv("COLUMNS", str(width))
        tables.show([item], columns, spare, nothing="None.")
        return [line.rstrip() for line in capsys.readouterr().out.splitlines() if line.strip()]

    return of


@pytest.mark.parametrize("width", [40, 80, 200])
def test_code_tool_reference_and_time_of_an_error_are_never_broken(printed, width):
    out = "\n".join(printed(ERROR, lists._ERRORS, lists._SPARE_OF_ERRORS, width))

    for whole in ("2026-11-30T14:00:00Z", "book_meeting", "UNAVAILABLE", "938N-KRKA-S18P"):
        assert whole in out


@pytest.mark.parametrize("width", [40, 80, 200])
def test_time_and_reference_of_a_group_are_never_broken(printed, width):
    out = "\n".join(printed(GROUP, lists._GROUPS, lists._SPARE_OF_GROUPS, width))

    for whole in ("2026-11-30T14:00:00Z", "938N-KRKA-S18P", "parse_event"):
        assert whole in out


@pytest.mark.parametrize("width", [40, 80, 200])
def test_time_tool_and_id_of_a_dead_letter_are_never_broken(printed, width):
    out = "\n".join(printed(LETTER, dead_letters._COLUMNS, dead_letters._SPARE, width))

    for whole in ("2026-11-30T14:00:00Z", "refund_order", LETTER["id"]):
        assert whole in out


def test_eighty_columns_hold_one_line_of_an_error_without_its_reason(printed):
    heading, _, line = printed(ERROR, lists._ERRORS, lists._SPARE_OF_ERRORS, 80)

    assert heading.split() == ["at", "tool", "outcome", "code", "reference"]
    assert line.split() == [
        "2026-11-30T14:00:00Z", "book_meeting", "timed_out", "UNAVAILABLE", "938N-KRKA-S18P",
    ]  # fmt: skip
    assert len(line) <= 80


def test_a_wide_terminal_shows_every_column(printed):
    heading, _, line = printed(INVALID, lists._ERRORS, lists._SPARE_OF_ERRORS, 120)

    assert heading.split() == list(lists._ERRORS)
    assert line.split() == ["2026-11-30T14:00:00Z", *list(INVALID.values())[1:]]


def test_no_room_is_kept_for_the_field_where_no_argument_was_wrong(printed):
    heading, _, _ = printed(ERROR, lists._ERRORS, lists._SPARE_OF_ERRORS, 200)

    assert heading.split() == [
        "at", "tool", "outcome", "code", "reason", "effect", "reference",
    ]  # fmt: skip


def test_the_field_takes_no_room_from_what_every_error_has(printed):
    heading, _, _ = printed(INVALID, lists._ERRORS, lists._SPARE_OF_ERRORS, 110)

    assert heading.split() == [
        "at", "tool", "outcome", "code", "reason", "effect", "reference",
    ]  # fmt: skip


def test_a_name_longer_than_any_model_takes_is_folded_beside_a_whole_reference(printed):
    lines = printed(ERROR | {"tool": "x" * 200}, lists._ERRORS, lists._SPARE_OF_ERRORS, 120)

    assert len(lines) > 3
    assert "938N-KRKA-S18P" in lines[2]
    assert sum(line.count("x") for line in lines) == 200


def test_an_empty_table_is_a_sentence(capsys):
    tables.show([], lists._ERRORS, lists._SPARE_OF_ERRORS, nothing="No call matches.")

    assert capsys.readouterr().out == "No call matches.\n"


def test_a_search_that_stopped_early_does_not_say_that_there_is_none():
    assert lists._no_call({"items": [], "searched_to": "2026-11-30T14:00:00Z"}) == (
        "No call matches since 2026-11-30T14:00:00Z. "
        "Search further back: --until 2026-11-30T14:00:00Z"
    )
