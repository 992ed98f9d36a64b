"""Groups of the same error: announced once, counted by the hour, reopened by a new version."""

import pytest

from toolfault import conventions


@pytest.fixture
def resolved(writer, db, make):
    """A group that was seen in version 1.4.2 and then resolved; gives the call."""
    call = make.failed()
    writer.load([call])
    db.conn.execute("UPDATE error_group SET status = 'resolved'")
    return call


@pytest.fixture
def announced(db):
    query = "SELECT service, environment, label, amount FROM event_total WHERE metric = %s"
    return lambda: db.all(query, conventions.ERROR_GROUPS_NEW)


def test_a_group_is_that_of_its_first_occurrence(writer, db, make):
    call = make.failed()
    writer.load([call, make.again(call, environment="staging", started_at=make.now)])
    columns = "first_seen, service, environment, tool, code, reason, exception_type, frame, sample_reference_id, versions"
    assert db.all(f"SELECT {columns} FROM error_group") == [  # noqa: S608
        (
            call.started_at, "desk", "prod", "book_meeting", "UNAVAILABLE", "upstream_unavailable", "HTTPStatusError",
            "tools.calendar:book", call.reference_id, ["1.4.2"],
        )
    ]  # fmt: skip


def test_occurrences_are_counted_by_the_hour(writer, db, make):
    at = make.now.replace(minute=30)
    call = make.failed(started_at=at.replace(minute=10), received_at=at)
    writer.load([call, make.again(call, started_at=at)])
    writer.load([make.again(call, started_at=at.replace(minute=20))])
    row = (at.replace(minute=0, second=0), 3, at)
    assert db.all("SELECT hour, calls, last_seen FROM error_group_tally") == [row]


def test_a_new_group_is_announced_once(writer, open_writer, make, announced):
    call = make.failed()
    writer.load([make.ok(), call, make.again(call)])
    open_writer().load([make.again(call)])
    assert announced() == [("desk", "prod", "book_meeting UNAVAILABLE", 1)]


def test_a_version_seen_before_leaves_a_resolved_group_resolved(writer, db, make, resolved):
    writer.load([make.again(resolved)])
    assert db.one("SELECT status, versions FROM error_group") == ("resolved", ["1.4.2"])


def test_a_version_not_seen_yet_reopens_a_resolved_group(writer, db, make, resolved):
    writer.load([make.again(resolved, version="1.5.0")])
    assert db.one("SELECT status, versions, status_at IS NOT NULL FROM error_group") == (
        "open",
        ["1.4.2", "1.5.0"],
        True,
    )


def test_another_writer_reopens_it_too_and_once(open_writer, db, make, resolved):
    for version in ("1.5.0", "1.5.0"):
        open_writer().load([make.again(resolved, version=version)])
    assert db.one("SELECT status, versions FROM error_group") == ("open", ["1.4.2", "1.5.0"])


def test_a_muted_group_stays_muted(writer, db, make, resolved):
    db.conn.execute("UPDATE error_group SET status = 'muted'")
    writer.load([make.again(resolved, version="1.5.0")])
    assert db.one("SELECT status FROM error_group") == "muted"


def test_a_late_call_reopens_and_announces_nothing_but_has_its_group(
    writer, db, make, resolved, announced
):
    yesterday = make.ago(days=1)
    writer.load([make.again(resolved, version="1.5.0", started_at=yesterday)])
    writer.load([make.failed(tool="other", started_at=yesterday)])
    assert db.one("SELECT status FROM error_group WHERE tool = 'book_meeting'") == "resolved"
    assert db.one("SELECT count(*) FROM error_group") == 2
    assert [label for *_, label, _ in announced()] == [f"{conventions.UNDECLARED} UNAVAILABLE"]


def test_a_version_first_seen_late_still_reopens_when_it_comes_in_time(writer, db, make, resolved):
    writer.load([make.again(resolved, version="1.5.0", started_at=make.ago(days=1))])
    writer.load([make.again(resolved, version="1.5.0")])
    assert db.one("SELECT status FROM error_group") == "open"


def test_an_occurrence_of_an_absurd_time_counts_in_the_hour_it_arrived(writer, db, make):
    call = make.failed(started_at=make.now.replace(year=2001))
    writer.load([call])
    hour = make.now.replace(minute=0, second=0)
    assert db.all("SELECT hour, last_seen FROM error_group_tally") == [(hour, make.now)]
    assert db.one("SELECT first_seen FROM error_group") == make.now
