"""A reporting agent gets a new version that breaks one of its tools: the burst a page is for.

    python examples/release_gone_wrong.py --calm 60

Sends its telemetry where the OTEL_* variables say, by default to a `toolfault up` on this machine.
Prints the references of the calls that broke, one a line.
"""

from __future__ import annotations

import argparse
import itertools
import time

import toolfault

REPORTS = {"week": {"meetings": 12}, "month": {"meetings": 51}}
RENAMED = {name: {"meeting_count": 1} for name in REPORTS}


@toolfault.guard("summarise", writes=False, owner="reporting team", owner_contact="#reporting")
def summarise(period: str, reports: dict[str, dict[str, int]]) -> str:
    """Say how many meetings there were."""
    return f"{reports[period]['meetings']} meetings"


def converse(number: int, reports: dict[str, dict[str, int]]) -> list[str]:
    """One conversation; the references of what failed in it."""
    with toolfault.run(f"report-{number}", agent="reporter") as run:
        for period in REPORTS:
            summarise(period, reports)
    return [call.reference_id for call in run.calls if call.reference_id]


def main(calm: float, conversations: int) -> list[str]:
    """All is well for a while; then the reports' column has another name."""
    toolfault.configure(service_name="reporting-agent")
    numbers = itertools.count()
    until = time.monotonic() + calm
    while time.monotonic() < until:
        converse(next(numbers), REPORTS)
        time.sleep(0.5)
    broken = []
    for _ in range(conversations):
        broken += converse(next(numbers), RENAMED)
    return broken


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calm", type=float, default=30, help="seconds until it breaks")
    parser.add_argument("--conversations", type=int, default=60, help="that break")
    given = parser.parse_args()
    print(*main(given.calm, given.conversations), sep="\n")
