"""What every route needs: one value, made once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends
from starlette.requests import Request

from toolfault.reference import LONGEST_PASTE
from toolfault.store.queries import changes
from toolfault.web import pasted  # noqa: F401 - routes name its convertor
from toolfault.web.access import Doorkeeper, Principal, address
from toolfault.web.lookup import Links, lookup
from toolfault.web.problems import ProblemError

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from toolfault.alerts.spec import Spec
    from toolfault.metrics import Collects
    from toolfault.web.models import Answer


_TOO_LONG = f"This text is longer than {LONGEST_PASTE:,} characters. Paste the part of it that holds the reference."


@dataclass(frozen=True, slots=True)
class Context:
    """The store, the door and the settings of one application."""

    engine: Engine
    lookups: Engine  # keeps its plans
    doors: Doorkeeper
    registry: Collects
    readiness: Callable[[], str | None]
    base_url: str | None
    links: Links
    retention_days: int
    alerts: Spec

    def now(self) -> datetime:
        """The present moment."""
        return datetime.now(UTC)

    def look_up(self, request: Request, principal: Principal, text: str) -> Answer:
        """One look-up for somebody: limited, answered, audited.

        Raises:
            ProblemError: 429 after too many look-ups of what is not there, 414 for a text that
                would not be read to its end.
        """
        if len(text) > LONGEST_PASTE:
            raise ProblemError(414, _TOO_LONG)
        caller = f"{address(request)} {principal.token_id}"
        self.doors.refuse_beyond(self.doors.misses, caller)
        with self.lookups.connect() as conn:
            answer = lookup(
                conn,
                text,
                viewer=principal.viewer,
                now=self.now(),
                retention_days=self.retention_days,
                links=self.links,
            )
            changes.audit(
                conn,
                asked=answer.reference,
                state=answer.state,
                now=self.now(),
                token_id=principal.token_id,
            )
        if not answer.is_here:
            self.doors.misses.count(caller)
        return answer


async def _context(request: Request) -> Context:
    context: Context = request.app.state.context
    return context


Ctx = Annotated[Context, Depends(_context)]
