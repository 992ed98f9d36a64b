"""Never run: mypy checks that the public API keeps the types of those who use it."""

from typing import assert_type

import toolfault
from toolfault.testing import Reported, ToolCall, capture_tool_errors


@toolfault.guard("book")
def book(date: str, slot: str = "10:00") -> dict[str, str]:
    return {date: slot}


@toolfault.guard("cancel", on_error="raise", timeout=3)
async def cancel(booking: str) -> int:
    return len(booking)


async def agent() -> None:
    assert_type(book("2026-10-06"), dict[str, str])
    assert_type(await cancel("A-1042"), int)
    book(1)  # type: ignore[arg-type]
    with toolfault.run("conversation", deadline=3) as run:
        assert_type(run, toolfault.Run)
        assert_type(run.remaining(), float)
    async with toolfault.run() as again:
        assert_type(again.conversation_id, str | None)
    with capture_tool_errors() as reported:
        assert_type(reported, Reported)
        assert_type(reported.only(), ToolCall)


rules = toolfault.ToolErrorMap({TimeoutError: toolfault.timed_out()}, statuses={})
assert_type(rules.classify(TimeoutError(), tool="book"), toolfault.ToolError)
assert_type(toolfault.never_ran(toolfault.ToolNotFoundError("bok")), toolfault.Envelope)
assert_type(toolfault.instructions(), str)
toolfault.guard("book", on_error="explode")  # type: ignore[arg-type]
