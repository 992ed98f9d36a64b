"""An agent whose tools break in the way it is told, in a process of its own.

Says "ready" once its tools are declared, waits for a line, breaks, and prints the references.
"""

import json
import sys

from opentelemetry._logs import get_logger_provider

import toolfault


def _broken(name):
    @toolfault.guard(name)
    def tool():
        raise RuntimeError(f"{name} is broken")

    return tool


@toolfault.guard("denied")
def denied():
    raise toolfault.ToolFailure("denied", "upstream_forbids", code="PERMISSION_DENIED")


@toolfault.guard("down", writes=False)
def down():
    raise toolfault.ToolFailure("down", "upstream_gone", transient=True)


ONE = [_broken("broken")]
TWO = [_broken("broken_one"), _broken("broken_two")]
SIX = [_broken(f"broken_{number}") for number in range(6)]
#: What breaks: the tools, and how many calls each gets in one conversation.
WAYS = {
    "one": (ONE, 1), "two": (TWO, 1), "six": (SIX, 1), "denied": ([denied], 1), "down": ([down], 2),
}  # fmt: skip


def main(way, conversations):
    toolfault.configure(service_name=f"breaks-{way}")
    get_logger_provider().force_flush()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    tools, calls = WAYS[way]
    told = []
    for number in range(conversations):
        with toolfault.run(conversation_id=f"{way}-{number}", agent="tester") as run:
            for tool in tools * calls:
                tool()
        told += [call.reference_id for call in run.calls]
    get_logger_provider().force_flush()
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
