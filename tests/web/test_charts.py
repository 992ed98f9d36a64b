"""Where the parts of a chart lie."""

from datetime import UTC, datetime, timedelta

from toolfault.web import charts

NOON = datetime(2026, 11, 30, 12, 20, tzinfo=UTC)


def test_a_bar_holds_what_was_not_ok_in_one_order_on_its_scale():
    bar = charts.bar({"ok": 90, "declined": 4, "failed": 6}, full=0.2, width=100)

    # full at 20 of 100 calls: 5 pixels a call
    assert bar.parts == (("failed", 0.0, 30.0), ("declined", 30.0, 20.0))
    assert not bar.is_cut


def test_a_bar_longer_than_its_scale_is_cut():
    bar = charts.bar({"failed": 8, "timed_out": 2}, full=0.2, width=100)

    assert bar == charts.Bar((("failed", 0.0, 100.0),), is_cut=True)


def test_a_bar_of_no_calls_is_empty():
    assert charts.bar({}, full=0.2, width=100) == charts.Bar((), is_cut=False)


def test_columns_stand_on_the_axis_and_their_scale_ends_at_a_round_number():
    stacked = charts.columns([{"failed": 10, "declined": 5}, {}, {"failed": 13}], room=100)

    # 15 calls at most: the scale ends at 20, 5 pixels a call
    assert stacked.top == 20
    assert stacked.columns == (
        (("failed", 50.0, 50.0), ("declined", 25.0, 25.0)),
        (),
        (("failed", 35.0, 65.0),),
    )


def test_a_line_reaches_its_top_and_shows_what_is_usual():
    # 16 pixels between the margins of 3
    assert charts.line([0, 4], 2, most=4) == charts.Line(((2, 19), (6, 3)), 11)
    assert charts.line([0, 0], 0, most=0) == charts.Line(((2, 19), (6, 19)), None)


def test_a_span_of_days_begins_at_midnight_and_sums_the_hours_of_each():
    days = charts.SPANS["28d"]
    starts = days.starts(NOON)

    assert starts[-2:] == [datetime(2026, 11, 29, tzinfo=UTC), datetime(2026, 11, 30, tzinfo=UTC)]
    hours = [
        (starts[0] - timedelta(hours=1), "failed", 100),
        (starts[-1] - timedelta(hours=1), "failed", 1),
        (starts[-1], "failed", 2),
        (starts[-1] + timedelta(hours=12), "failed", 3),
        (starts[-1] + timedelta(hours=12), "ok", 4),
    ]
    assert days.sorted(hours, starts)[-3:] == [{}, {"failed": 1}, {"failed": 5, "ok": 4}]


def test_a_span_that_is_not_offered_is_the_usual_one():
    assert charts.span("nonsense").steps == 48
    assert charts.span("nonsense", "24h").steps == 25
