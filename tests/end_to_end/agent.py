"""An agent whose calls end in every way, in a process of its own.

Prints a JSON object: for each tool its outcome, effect and reference as the agent knows them.
"""

import asyncio
import contextlib
import json
import sys

from opentelemetry._logs import get_logger_provider

import toolfault

#: What the raw exception says: must leave the process in the exception detail alone.
PLANTED = "planted-raw-text"
SECRET = "pass" + "word=" + "visibly-fake-4711"


@toolfault.guard("tool_ok")
def ok():
    return {"fine": True}


@toolfault.guard("tool_failed")
def failed():
    raise toolfault.ToolFailure("tool_failed", "upstream_gone", code="UNAVAILABLE")


@toolfault.guard("tool_crashed")
def crashed():
    raise RuntimeError(f"{PLANTED} {SECRET}")


@toolfault.guard("tool_timed_out")
def timed_out():
    raise TimeoutError(PLANTED)


@toolfault.guard("tool_declined")
def declined():
    raise toolfault.ToolRefusal("tool_declined", "not_cancellable", "It has begun.")


@toolfault.guard("tool_invalid", writes=False)
def invalid():
    raise toolfault.ToolArgumentValidationError("tool_invalid", field="date") from ValueError(
        PLANTED
    )


@toolfault.guard("tool_flaky", max_attempts=2)
def flaky(tries):
    tries.append(1)
    if len(tries) < 2:
        raise ConnectionRefusedError(PLANTED)
    return "second time"


@toolfault.guard("tool_cancelled")
async def cancelled():
    await asyncio.sleep(60)


async def _cancel():
    task = asyncio.create_task(cancelled())
    await asyncio.sleep(0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def main(conversation):
    toolfault.configure(service_name="every-outcome")
    get_logger_provider().force_flush()  # a process this short would declare its tools too late
    with toolfault.run(conversation_id=conversation, agent="tester") as run:
        for call in (ok, failed, crashed, timed_out, declined, invalid):
            call()
        flaky([])
        asyncio.run(_cancel())
        toolfault.never_ran(toolfault.ToolNotPermittedError("tool_refused"))
        toolfault.never_ran(toolfault.ToolNotFoundError("tool_not_found"))
    told = {ran.tool: [ran.outcome, ran.effect, ran.reference_id] for ran in run.calls}
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1])
