"""Where a reference leads, whatever came first."""

from datetime import UTC, date, datetime, timedelta

import pytest

from toolfault import conventions, reference
from toolfault.store.models import UNDATED

HOP_1 = """SELECT count(*), count(outcome) FROM reference r WHERE reference_id = %s AND (outcome IS NOT NULL
    OR NOT EXISTS (SELECT FROM reference o WHERE o.reference_id = r.reference_id AND o.trace_id = r.trace_id
    AND o.outcome IS NOT NULL))"""


@pytest.fixture
def shown(db):
    """How many rows of a reference are shown, and how many of them have an outline."""
    return lambda call: db.one(HOP_1, call.reference_id)


def test_a_failed_call_has_its_outline(writer, db, make):
    call = make.failed(attempts=2)
    writer.load([call])
    columns = (
        "started_at, received_at, day, attempts, reference_id, trace_id, span_id, service, environment, tool, outcome, "
        "code, reason, action, effect, fingerprint"
    )
    assert db.all(f"SELECT {columns} FROM reference") == [  # noqa: S608
        (
            call.started_at, call.received_at, reference.day_of(call.reference_id), 2, call.reference_id, call.trace_id,
            call.span_id, "desk", "prod", "book_meeting", "failed", "UNAVAILABLE", "upstream_unavailable", "retry_later",
            "unknown", call.fingerprint,
        )
    ]  # fmt: skip


def test_the_outline_is_filled_in_when_the_call_comes_after_its_detail_and_events(
    writer, db, make, shown
):
    call = make.failed()
    event = make.event(call, conventions.BUDGET_EXHAUSTED)
    writer.load([], [], [make.log(call), make.log(call, "application")])
    assert shown(call) == (1, 0)
    writer.load([], [event])
    assert shown(call) == (2, 0)
    writer.load([call])
    assert shown(call) == (1, 1)
    writer.load([call], [event], [make.log(call)])
    assert shown(call) == (1, 1)
    assert db.one("SELECT count(*) FROM reference") == 2
    assert (
        db.one(
            "SELECT amount FROM event_total WHERE metric = %s", conventions.BUDGET_EXHAUSTED_TOTAL
        )
        == 1
    )


def test_an_event_after_the_call_leaves_the_outline_as_it_is(writer, make, shown):
    call = make.failed()
    writer.load([call])
    writer.load([], [make.event(call, conventions.GENERIC_ERROR)])
    assert shown(call) == (1, 1)


def test_all_signals_in_one_batch_make_one_row_with_an_outline(writer, make, shown):
    call = make.failed()
    writer.load([call], [make.event(call, conventions.BUDGET_EXHAUSTED)], [make.log(call)])
    assert shown(call) == (1, 1)


def test_records_an_application_stamped_lead_nowhere_by_themselves(writer, db, make):
    writer.load([], [], [make.log(make.failed(), None), make.log(make.failed(), conventions.LOG)])
    assert db.one("SELECT count(*) FROM log_record") == 2
    assert db.one("SELECT count(*) FROM reference") == 1


def test_a_partial_row_says_whose_it_is(writer, db, make):
    writer.load([], [], [make.log(make.failed(service="other", environment="staging"))])
    row = db.one("SELECT service, environment, outcome, received_at FROM reference")
    assert row == ("other", "staging", None, make.now)


@pytest.mark.parametrize(
    ("made", "day"),
    [
        (
            lambda now: reference.new(day=(now - timedelta(days=300)).date()),
            lambda now: (now - timedelta(days=300)).date(),
        ),
        (lambda now: reference.new(day=date(2024, 1, 1)), lambda _: UNDATED.date()),
        (lambda now: reference.new(day=(now + timedelta(days=2)).date()), lambda _: UNDATED.date()),
        (lambda _: "4be1c02d", lambda now: (now - timedelta(minutes=2)).date()),
    ],
    ids=["within 400 days", "older", "after tomorrow", "foreign"],
)
def test_the_day_is_the_one_in_the_reference_else_the_records_within_what_is_kept(
    writer, db, make, made, day
):
    writer.load([make.failed(reference_id=made(make.now))])
    assert db.all("SELECT day FROM reference") == [(day(make.now),)]


def test_a_foreign_reference_of_an_absurd_time_is_still_found(writer, make, shown):
    call = make.failed(reference_id="4be1c02d", started_at=datetime(1970, 1, 1, tzinfo=UTC))
    writer.load([call])
    writer.load([call])
    assert shown(call) == (1, 1)


def test_one_reference_may_lead_to_several_calls(writer, make, shown):
    call = make.failed()
    writer.load([call, make.again(call, reference_id=call.reference_id)])
    assert shown(call) == (2, 2)
