"""The black box of a failed call, and references on the application's own log records."""

import asyncio
import io
import logging

import pytest
import structlog

import toolfault
from toolfault import ToolFailure, guard
from toolfault.telemetry import black_box
from toolfault.telemetry.stamping import ContextFilter, structlog_processor

log = logging.getLogger("app.calendar")


@pytest.fixture
def _black_box():
    make = logging.getLogRecordFactory()
    log.setLevel(logging.DEBUG)
    black_box.install()
    black_box.install()
    yield
    logging.setLogRecordFactory(make)


@guard("book")
def book(*lines, error=None):
    for line in lines:
        log.info(line)
    if error is not None:
        raise error


@pytest.mark.usefixtures("_black_box")
class TestBlackBox:
    def test_what_a_failed_call_logged_is_sent_with_its_reference(self, exported):
        @guard("pay")
        def pay():
            log.warning("card %s declined by %s", "4711", "acme")
            raise KeyError

        ref = pay()["error"]["ref"]
        (record,) = exported.named("toolfault.log")
        assert record.body == "card 4711 declined by acme"
        assert record.severity_number.value == 13
        assert dict(record.attributes) == {
            "toolfault.reference_id": ref,
            "toolfault.logger": "app.calendar",
        }
        assert record.span_id == exported.spans[-1].context.span_id

    def test_what_a_call_that_went_well_logged_is_dropped(self, exported):
        book("fine")
        assert exported.named("toolfault.log") == []

    def test_a_refusal_is_not_a_failure(self, exported):
        book("asked", error=toolfault.ToolRefusal("book", "taken", "Taken."))
        assert exported.named("toolfault.log") == []

    def test_secrets_are_scrubbed_and_exceptions_left_out(self, exported):
        @guard("pay")
        def pay():
            try:
                raise ValueError("planted-text")
            except ValueError:
                log.exception("login with password=%s", "not-a-real-one")
            raise KeyError

        pay()
        (record,) = exported.named("toolfault.log")
        assert "not-a-real-one" not in record.body
        assert "planted-text" not in repr(vars(record))

    def test_the_last_fifty_records_are_kept(self, exported):
        book(*(f"line {n}" for n in range(60)), error=KeyError())
        bodies = [record.body for record in exported.named("toolfault.log")]
        assert bodies == [f"line {n}" for n in range(10, 60)]

    def test_sixteen_kibibytes_are_kept(self, exported):
        book(*(f"{n:04}" + "x" * 3996 for n in range(10)), error=KeyError())
        bodies = [record.body[:4] for record in exported.named("toolfault.log")]
        assert bodies == ["0006", "0007", "0008", "0009"]

    def test_it_can_be_switched_off(self, exported, monkeypatch):
        monkeypatch.setenv("TOOLFAULT_EXCEPTION_DETAIL", "off")
        book("line", error=KeyError())
        assert exported.named("toolfault.log") == []

    def test_a_log_call_with_wrong_arguments_harms_nobody(self, exported):
        @guard("pay")
        def pay():
            log.handle(log.makeRecord("app", 20, "f", 1, "%d items", ("many",), None))
            raise KeyError

        pay()
        assert [record.body for record in exported.named("toolfault.log")] == ["%d items"]

    def test_an_object_that_cannot_be_written_harms_nobody(self, exported, monkeypatch):
        class Awkward:
            def __str__(self):
                raise RuntimeError("not now")

        monkeypatch.setattr(logging, "raiseExceptions", False)
        book(Awkward(), error=KeyError())
        assert [record.body for record in exported.named("toolfault.log")] == ["[unprintable]"]

    async def test_calls_side_by_side_keep_their_own(self, exported):
        @guard("pay")
        async def pay(name):
            log.info("first %s", name)
            await asyncio.sleep(0)
            log.info("second %s", name)
            raise KeyError

        answers = await asyncio.gather(pay("a"), pay("b"))
        by_ref = {answer["error"]["ref"]: [] for answer in answers}
        for record in exported.named("toolfault.log"):
            by_ref[record.attributes["toolfault.reference_id"]].append(record.body)
        assert sorted(by_ref.values()) == [["first a", "second a"], ["first b", "second b"]]


def test_the_filter_puts_reference_trace_and_run_on_a_record(exported):
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.addFilter(ContextFilter())
    handler.setFormatter(logging.Formatter("%(ref)s %(trace_id)s %(run_id)s %(message)s"))
    log.addHandler(handler)
    try:
        with toolfault.run("c", run_id="run-1"):
            answer = book("inside", error=KeyError())
        log.error("outside")
    finally:
        log.removeHandler(handler)
    trace_id = format(exported.spans[0].context.trace_id, "032x")
    assert out.getvalue().splitlines() == [
        f"{answer['error']['ref']} {trace_id} run-1 inside",
        "- - - outside",
    ]


def test_the_structlog_processor_adds_what_is_known(exported):
    lines = []
    slog = structlog.wrap_logger(
        structlog.PrintLogger(io.StringIO()),
        processors=[structlog_processor, lambda _, __, event: lines.append(dict(event)) or ""],
    )

    @guard("pay")
    def pay():
        slog.info("paying", amount=3)
        raise ToolFailure("pay", "gone", code="NOT_FOUND")

    ref = pay()["error"]["ref"]
    slog.info("after")
    trace_id = format(exported.spans[0].context.trace_id, "032x")
    assert lines == [
        {"event": "paying", "amount": 3, "ref": ref, "trace_id": trace_id},
        {"event": "after"},
    ]
