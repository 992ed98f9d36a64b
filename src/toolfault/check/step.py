"""One thing that was checked."""

from __future__ import annotations

from typing import NamedTuple

OK, FAILED, SKIPPED = "ok", "failed", "skipped"


class Step(NamedTuple):
    """What was checked, what came of it, and what to do where it failed."""

    name: str
    state: str
    told: str
    next_step: str | None = None


class CheckError(Exception):
    """A check that failed: what is wrong, and what to do."""

    def __init__(self, told: str, next_step: str) -> None:
        super().__init__(told)
        self.told, self.next_step = told, next_step
