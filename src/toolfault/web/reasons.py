"""The reasons a tool gives: how often, whether they are declared, whether the next call went well."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolfault import taxonomy
from toolfault.store.queries.tool_errors import BOUND

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from toolfault.store.queries.tool_errors import Reason

#: Reasons of the library and of the service; a tool's author need not declare them.
_OWN = frozenset(
    {
        taxonomy.TIMED_OUT,
        taxonomy.NOT_PERMITTED,
        taxonomy.REJECTED,
        taxonomy.INVALID_ARGUMENTS,
        taxonomy.UNKNOWN_TOOL,
        taxonomy.INVALID_RESULT,
        taxonomy.RETURNED_ERROR,
        taxonomy.GENERIC_ERROR,
    }
)


@dataclass(frozen=True, slots=True)
class Given:
    """One reason. Where not all calls were read, their number follows from those read."""

    reason: str | None
    outcome: str
    code: str
    action: str
    calls: int
    about: str
    last_seen: datetime
    followed: int
    followed_ok: int
    declared: str


def given(
    rows: Sequence[Reason], counted: Mapping[str, int], declared: Collection[str]
) -> list[Given]:
    """The reasons, most frequent first.

    Args:
        rows: reasons among the newest calls of each code.
        counted: all calls of each code in the same time.
        declared: the reasons the tool declared.
    """
    read = Counter[str]()
    for row in rows:
        read[row.code] += row.calls
    found = [_given(row, read[row.code], counted.get(row.code, 0), declared) for row in rows]
    return sorted(found, key=lambda one: one.calls, reverse=True)


def _given(row: Reason, read: int, counted: int, declared: Collection[str]) -> Given:
    about, calls = "", row.calls
    if read >= BOUND:  # of a tool without a label of its own nothing more is counted
        about = "about " if counted >= read else "over "
        calls = round(calls * max(counted, read) / read)
    return Given(
        row.reason,
        row.outcome,
        row.code,
        row.action,
        calls,
        about,
        row.last_seen,
        row.followed,
        row.followed_ok,
        _declared(row.reason, declared),
    )


def _declared(reason: str | None, declared: Collection[str]) -> str:
    if reason in declared:
        return "yes"
    if reason == taxonomy.UNMAPPED_FAILURE:
        return "no: map it"
    return "not needed" if reason in _OWN else "no"


def fixed(reasons: Iterable[Given], outcome: str) -> tuple[int, int]:
    """Of the calls that ended this way and were followed by another: how many, and how many well."""
    of_it = [one for one in reasons if one.outcome == outcome]
    return sum(one.followed for one in of_it), sum(one.followed_ok for one in of_it)
