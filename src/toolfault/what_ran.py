"""What to tell the user when a run ends without an answer: what ran in it, and whether it landed.

A sentence that nothing happened is wrong as soon as one tool has run, so it is never written; what
is said is what the run has on record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from toolfault.run import Run, current_run
from toolfault.taxonomy import Effect
from toolfault.telemetry import declared

UNREACHABLE = "I could not reach the assistant service just now."
_UNFINISHED = "Your request was not completed"


class WhatRan(NamedTuple):
    """The tools of a run by what is known of their effect, each in the order they ran."""

    applied: tuple[str, ...]
    uncertain: tuple[str, ...]  # may have taken effect, or are still at it
    references: tuple[str, ...]  # of the uncertain calls that have one
    complete: bool  # every call of the run is still on record

    @property
    def nothing_on_record(self) -> bool:
        """Whether the record is whole and shows no change."""
        return self.complete and not self.applied and not self.uncertain


def what_ran(run: Run | None = None) -> WhatRan:
    """What ran in a run, by default the current one; outside of any nothing is known."""
    run = run or current_run()
    if run is None:
        return WhatRan((), (), (), complete=False)
    uncertain = [call for call in run.calls if call.effect is Effect.UNKNOWN]
    return WhatRan(
        _distinct(call.tool for call in run.calls if call.effect is Effect.APPLIED),
        _distinct([*(call.tool for call in uncertain), *filter(_may_write, +run.under_way.copy())]),
        _distinct(call.reference_id for call in uncertain if call.reference_id),
        complete=not run.forgotten,
    )


def fallback(
    lead: str = UNREACHABLE,
    *,
    words: Mapping[str, str] | None = None,
    run: Run | None = None,
) -> str:
    """An honest last message for the user, in place of the model's answer.

    Args:
        lead: the first sentence: what went wrong.
        words: what each tool does, in the user's words: `{"refund_order": "the refund"}`. Its name
            is used where there are none.
        run: the run it is about; by default the current one.
    """
    ran = what_ran(run)
    names = dict(words or {})
    told = [lead, f"{_UNFINISHED}."]
    if ran.nothing_on_record:
        told[1] = f"{_UNFINISHED}, and there is no record of any change. Please try again later."
    if ran.applied:
        told.append(f"Already done: {_listed(ran.applied, names)}. Please do not ask for it again.")
    if ran.uncertain:
        told.append(
            f"Not certain: {_listed(ran.uncertain, names)}. Please check before you ask again."
        )
    if ran.references:
        told.append(f"(ref {', '.join(ran.references)})")
    if not ran.complete:
        told.append("Something may have been done that I cannot see. Please check first.")
    return " ".join(told)


def _may_write(tool: str) -> bool:
    known = declared.known(tool)
    return known is None or known.writes


def _listed(tools: tuple[str, ...], names: Mapping[str, str]) -> str:
    return ", ".join(names.get(tool, tool) for tool in tools)


def _distinct(found: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found))
