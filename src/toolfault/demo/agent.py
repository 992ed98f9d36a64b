"""The agent: `python -m toolfault.demo.agent`. Tells what happens as JSON lines."""

from __future__ import annotations

import json
import os
from typing import Any

import toolfault
from toolfault.demo.calendar import calendar
from toolfault.demo.model import TURNS, ToolCall, Turn
from toolfault.demo.tools import CALENDAR, NEEDS_APPROVAL, TOOLS

SERVICE = "scheduling-agent"


def main() -> None:
    """Play every turn. Telemetry goes where the OTEL_* variables say."""
    toolfault.configure(service_name=SERVICE)
    with calendar() as address:
        os.environ[CALENDAR] = address
        for turn in TURNS:
            _play(turn)


def _play(turn: Turn) -> None:
    """The agent loop: model, tool, envelope back to the model, until it has words for the user."""
    _tell(user=turn.user)
    script = turn.script()
    with toolfault.run(conversation_id=turn.conversation, agent="scheduler") as run:
        call = next(script)
        while True:
            answer = _execute(call)
            ran = run.calls[-1]
            _tell(
                tool=ran.tool,
                outcome=ran.outcome,
                effect=ran.effect,
                reference=ran.reference_id,
                envelope=answer,
            )
            try:
                call = script.send(answer)
            except StopIteration as end:
                _tell(agent=end.value)
                return


def _execute(call: ToolCall) -> Any:
    if call.tool in NEEDS_APPROVAL:
        return toolfault.never_ran(
            toolfault.ToolNotPermittedError(
                call.tool, "needs_approval", message="Only an administrator may delete a calendar."
            )
        )
    if call.tool not in TOOLS:
        return toolfault.never_ran(toolfault.ToolNotFoundError(call.tool))
    return TOOLS[call.tool](**call.arguments)


def _tell(**what: Any) -> None:
    print(json.dumps(what), flush=True)  # noqa: T201 - the protocol of this process


if __name__ == "__main__":
    main()
