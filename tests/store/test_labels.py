"""Which names may be labels, how many, and that nothing is lost past the cap."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from toolfault import conventions
from toolfault.conventions import OTHER, UNDECLARED
from toolfault.store import labels


@pytest.fixture
def tools(db):
    """The tools that have calls, as labels."""
    return lambda: {tool for (tool,) in db.all("SELECT tool FROM call_total WHERE calls > 0")}


@pytest.fixture
def capped(monkeypatch):
    return lambda kind, cap: monkeypatch.setitem(labels.CAPS, kind, cap)


def test_a_name_that_was_never_declared_and_never_succeeded_is_no_label(writer, tools, make):
    writer.load([make.failed(tool="made_up"), make.failed(tool="charge")])
    assert tools() == {UNDECLARED}


def test_a_declared_tool_is_a_label_for_every_writer(writer, open_writer, tools, make):
    charge = make.failed(tool="charge")
    writer.load([charge])
    writer.load([], [make.event(charge, conventions.TOOL_DECLARED)])
    open_writer().load([make.again(charge)])
    assert tools() == {UNDECLARED, "charge"}


def test_a_successful_call_makes_its_tool_a_label_also_for_a_failure_in_the_same_batch(
    writer, tools, make
):
    writer.load([make.failed(), make.ok()])
    assert tools() == {"book_meeting"}


def test_the_same_tool_of_another_service_is_not_yet_a_label(writer, db, make):
    writer.load([make.ok(), make.failed(service="other")])
    rows = db.all("SELECT service, tool FROM call_total ORDER BY 1")
    assert rows == [("desk", "book_meeting"), ("other", UNDECLARED)]


def test_past_the_cap_service_environment_and_tool_are_other_and_sums_stay_right(
    writer, db, tools, make, capped
):
    capped("tool", 2)
    for tool in ("one", "two", "three", "four"):
        writer.load([make.ok(tool=tool)])
    assert tools() == {"one", "two", OTHER}
    row = db.one("SELECT service, environment, tool, calls FROM call_total WHERE tool = %s", OTHER)
    assert row == (OTHER, OTHER, OTHER, 2)


def test_a_cap_that_is_reached_takes_no_lock_any_more(writer, db, make, capped):
    capped("tool", 1)
    writer.load([make.ok(tool="one")])
    writer.load([make.ok(tool="two")])
    with db.conn.transaction():
        db.conn.execute("SELECT pg_advisory_xact_lock(%s)", [labels.locks.LABELS])
        assert writer.load([make.ok(tool="three")]).calls == 1


def test_agents_models_and_services_have_caps_of_their_own(writer, db, make, capped):
    for kind in ("agent", "model", "service"):
        capped(kind, 1)
    call = make.ok()
    for n, service in enumerate(["a", "b"]):
        at = make.ok(service=service)
        writer.load(
            [],
            [
                make.event(at, conventions.RUN_LIMIT_EXCEEDED, label=f"agent-{n}"),
                make.event(at, conventions.MODEL_CALL, label=f"model-{n}", outcome="ok"),
                make.event(at, conventions.UNREGISTERED_TOOL, label="a name the model made up"),
            ],
        )
    rows = db.all(
        "SELECT metric, service, label FROM event_total WHERE metric <> %s",
        conventions.MODEL_ATTEMPTS,
    )
    assert sorted(rows) == sorted(
        [
            (conventions.RUN_LIMIT_EXCEEDED_TOTAL, "a", "agent-0"),
            (conventions.RUN_LIMIT_EXCEEDED_TOTAL, OTHER, OTHER),
            (conventions.MODEL_CALLS, "a", "model-0"),
            (conventions.MODEL_CALLS, OTHER, OTHER),
            (conventions.UNREGISTERED_TOOL_CALLS, "a", ""),
            (conventions.UNREGISTERED_TOOL_CALLS, OTHER, ""),
        ]
    )
    assert writer.load([call]).calls == 1


def test_a_label_is_cut_to_a_hundred_characters(writer, tools, make):
    writer.load([make.ok(tool="t" * 150)])
    assert tools() == {"t" * 100}


def test_writers_that_admit_at_once_never_pass_the_cap(open_writer, db, make, capped):
    capped("tool", 5)
    writers = [open_writer() for _ in range(3)]
    batches = [[make.ok(tool=f"tool_{n}_{i}") for i in range(3)] for n in range(3)]
    start = threading.Barrier(3)

    def work(writer, batch):
        start.wait()
        return [writer.load([call]).calls for call in batch]

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(work, writers, batches)) == [[1, 1, 1]] * 3
    assert db.one("SELECT count(*) FROM label WHERE kind = 'tool'") == 5
    assert db.one("SELECT sum(calls) FROM call_total WHERE tool = %s", OTHER) == 4
