"""What a dead letter carries, and what is refused; its way to a replay is in end_to_end."""

import json
import logging

import pytest

import toolfault
from toolfault import ToolFailure, conventions, dead_letters, guard
from toolfault.ingest import wire
from toolfault.ingest.payload import payload

SECRET = "sk-" + "test" + "4" * 40


def told(exported):
    (event,) = exported.named(conventions.DEAD_LETTER)
    return dict(event.attributes)


def test_a_letter_says_what_why_and_in_which_run(exported):
    @guard("refund_order", on_error="raise")
    def refund_order():
        raise ToolFailure("refund_order", "payments_down", code="UNAVAILABLE")

    with toolfault.run("c-1", run_id="r-1") as run:
        with pytest.raises(ToolFailure) as raised:
            refund_order()
        assert dead_letters.record({"order_id": "A-1"}, tool="refund_order", error=raised.value)

    assert told(exported) == {
        "toolfault.payload": '{"order_id": "A-1"}',
        "gen_ai.tool.name": "refund_order",
        "toolfault.code": "UNAVAILABLE",
        "toolfault.reason": "payments_down",
        "toolfault.reference_id": run.calls[0].reference_id,
        "toolfault.run_id": "r-1",
        "gen_ai.conversation.id": "c-1",
    }


def test_the_payload_is_scrubbed_value_by_value(exported):
    dead_letters.record({"order_id": "A-1", "password": "hunter2-fake", "note": f"key {SECRET}"})

    kept = json.loads(told(exported)["toolfault.payload"])
    assert kept["order_id"] == "A-1"
    assert kept["password"].startswith("[REDACTED:")
    assert SECRET not in exported.everything()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"text": "x" * 5000}, "at most 4096 are kept: give the ids"),
        ({"what": object()}, "plain JSON: Object of type object is not JSON serializable"),
        ({"what": float("nan")}, "plain JSON"),
    ],
)
def test_what_nothing_could_be_replayed_from_is_refused(exported, wrong, words):
    with pytest.raises(ValueError, match=words):
        dead_letters.record(wrong)


def test_a_payload_that_is_no_dict_is_said(exported):
    with pytest.raises(TypeError, match="is 'A-1'; give a dict"):
        dead_letters.record("A-1")


def test_a_letter_nobody_takes_is_lost_aloud(caplog):
    with caplog.at_level(logging.ERROR):
        assert not dead_letters.record({"order_id": "A-1"}, tool="refund_order")
    assert "a dead letter of refund_order is lost" in caplog.text


def test_an_address_that_is_none_is_said():
    with pytest.raises(dead_letters.ServiceError, match="give an http:// or https:// address"):
        dead_letters.replay(print, url="localhost:8700")


#: What arrives at the service, from whomever, and what of it is kept.
ARRIVED = [
    ('{"order_id": "A-1", "n": [1, 2.5, null, true]}', {"order_id": "A-1", "n": [1, 2.5, None, True]}),
    ('{"a": "x\\u0000y"}', {"a": "x\ufffdy"}),
    ('{"a": "\\ud800"}', {"a": "?"}),
    ('{"a": NaN}', None),
    ("[1]", None),
    ("not json", None),
    ("[" * 3000, None),
    (json.dumps({"a": "x" * 5000}), None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kept"), ARRIVED, ids=lambda value: str(value)[:30])
def test_the_service_keeps_only_what_its_database_takes(text, kept):
    assert payload(wire.value(text)) == kept


def test_the_service_scrubs_again():
    assert SECRET not in str(payload(wire.value(json.dumps({"note": SECRET, "token": "abc"}))))


async def test_an_async_handler_is_refused_where_a_loop_already_runs():
    async def again(letter):
        pass

    with pytest.raises(RuntimeError, match=r"asyncio\.to_thread"):
        dead_letters.replay(again)
