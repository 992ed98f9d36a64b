"""An order-support agent while its model's provider is overloaded: 40 % of the requests fail.

    python examples/provider_outage.py

Needs nothing but `pip install toolfault`. With `pip install "toolfault[sdk]"`, a running
`toolfault up` and OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 its story is in the look-up
and in the metrics. The provider is scripted; everything else is as in a real agent.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from typing import Any, NamedTuple

import toolfault
from toolfault import callers, dead_letters
from toolfault.what_ran import what_ran

MODEL = "support-model-1"
WORDS = {"refund_order": "the refund"}

# --- the tools -----------------------------------------------------------------------------------


@toolfault.guard(
    "get_order",
    writes=False,
    owner="orders team",
    reasons={"timed_out": "Our order service is slow at the moment."},
)
def get_order(order_id: str) -> dict[str, Any]:
    """Read an order. The orders service is slow for one of them."""
    if order_id == "A-slow":
        raise TimeoutError("orders.internal:5432 did not answer")
    return {"order_id": order_id, "total": 12.5}


REFUNDS: dict[str, str] = {}


@toolfault.guard("refund_order", idempotent=True, owner="payments team")
def refund_order(order_id: str, idempotency_key: str) -> dict[str, str]:
    """Refund an order, once for each key."""
    REFUNDS.setdefault(idempotency_key, order_id)
    return {"refunded": order_id}


TOOLS = {"get_order": get_order, "refund_order": refund_order}

# --- the model: says which tool it wants, reads the answer, says the last word ---------------------


class Call(NamedTuple):
    """What the model wants to run."""

    tool: str
    order_id: str


Script = Generator[Call, dict[str, Any], str]


def look(order_id: str) -> Script:
    """Read an order, as often as the answers allow."""
    answer = yield Call("get_order", order_id)
    while answer.get("error", {}).get("action") == "retry_later":
        answer = yield Call("get_order", order_id)
    if answer["status"] == "error":
        return f"The order service is slow, please ask again later (ref {answer['error']['ref']})."
    return f"Your order comes to {answer['output']['total']}."


def refund(order_id: str) -> Script:
    """Read an order and refund it."""
    yield Call("get_order", order_id)
    yield Call("refund_order", order_id)
    return "The order is refunded."


class OverloadedError(Exception):
    """As providers' clients raise it."""

    status_code = 529


class Provider:
    """Answers or is overloaded, as it is told: `.` answers, `x` does not."""

    def __init__(self, script: Script, weather: str) -> None:
        self.script, self.weather = script, list(weather)

    def ask(self, answer: dict[str, Any] | None) -> Call | str:
        if self.weather.pop(0) == "x":
            raise OverloadedError("Exception at com.provider.Gateway")
        try:
            return self.script.send(answer)  # type: ignore[arg-type] # None starts it
        except StopIteration as said:
            return str(said.value)


# --- the agent -----------------------------------------------------------------------------------


def honest(error: Exception) -> str | None:
    """A last message where tools have run; where none has, the caller may repeat the whole."""
    return None if what_ran().nothing_on_record else toolfault.fallback(words=WORDS)


def agent(provider: Provider) -> str:
    """The loop: ask the model, run what it wants, until it says its last word."""
    answer = None
    while True:
        said = toolfault.retry_model_call(
            lambda read=answer: provider.ask(read), model=MODEL, max_attempts=3, on_error=honest
        )
        if isinstance(said, str):
            return said
        answer = TOOLS[said.tool](said.order_id)


def converse(conversation: str, provider: Provider) -> str:
    """The caller: what escapes the agent is classified, and never simply repeated."""
    with toolfault.run(conversation, agent="order-support", max_model_calls=12):
        try:
            return agent(provider)
        except Exception as error:  # noqa: BLE001 - the outermost handler
            verdict = callers.classify(error, words=WORDS)
            if verdict.action is callers.CallerAction.RETRY_LATER:
                dead_letters.record({"conversation": conversation}, error=error)
            return verdict.message


def main() -> dict[str, str]:
    """Every conversation with what its user read. 25 requests, of which 10 meet an overload."""
    REFUNDS.clear()
    return {
        name: converse(name, Provider(script, weather))
        for name, script, weather in (
            ("a look, repeated once", look("A-1"), ".x."),
            ("a refund, then the outage", refund("A-2"), ".x.xxx"),
            ("a slow order", look("A-slow"), ".xx.."),
            ("an outage from the start", look("A-3"), "xxx"),
            ("a refund", refund("A-4"), "..."),
            ("another refund", refund("A-5"), "..."),
            ("a look", look("A-6"), ".."),
        )
    }


if __name__ == "__main__":
    if "OTEL_EXPORTER_OTLP_ENDPOINT" in os.environ:
        toolfault.configure("order-support")
    print(json.dumps(main(), indent=2))
    toolfault.shutdown()
