"""The JSON API for dead letters: the list, one with its payload, taking one off."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import Field
from starlette.requests import Request

from toolfault import conventions as names
from toolfault.store.queries import changes, lists
from toolfault.store.queries.base import Scope
from toolfault.store.tokens import Role
from toolfault.web import cursor, listing
from toolfault.web.api import PROBLEMS
from toolfault.web.api_lists import ONLY_DECLARED, Cursor, Size, page_of
from toolfault.web.context import Context, Ctx
from toolfault.web.models import Frozen
from toolfault.web.problems import ProblemError

router = APIRouter(prefix="/api/v1", responses=PROBLEMS)

LetterId = Annotated[listing.Fingerprint, Path()]


class DeadLetterItem(Frozen):
    """Work somebody has to do again or write off."""

    id: str
    at: datetime
    service: str
    environment: str
    tool: str | None
    reference: str | None
    trace_id: str
    acknowledged_at: datetime | None
    acknowledged_by: str | None


class DeadLetterDetail(DeadLetterItem):
    """A dead letter with what its replay needs. Engineers only."""

    run_id: str | None
    conversation_id: str | None
    code: str | None
    reason: str | None
    payload: dict[str, Any] | None = Field(description="What its caller chose, scrubbed.")


@router.get("/dead-letters", tags=["lists"], dependencies=[ONLY_DECLARED])
def get_dead_letters(
    request: Request,
    ctx: Ctx,
    *,
    waiting: bool = True,
    service: Annotated[listing.Text | None, Query()] = None,
    tool: Annotated[listing.Text | None, Query()] = None,
    cursor: Cursor = None,
    size: Size = 50,
) -> listing.Page[DeadLetterItem]:
    """Work somebody has to do again or write off, newest first."""
    principal = ctx.doors.admit(request, Role.SUPPORT)
    narrowed = {"service": service, "tool": tool}
    return letters_page(ctx, principal.services, cursor, size, waiting=waiting, **narrowed)


def letters_page(
    ctx: Context,
    scope: Scope,
    after: str | None,
    size: int,
    *,
    waiting: bool,
    service: str | None = None,
    tool: str | None = None,
) -> listing.Page[DeadLetterItem]:
    """One page of the list of dead letters."""
    key = cursor.decode(after, datetime, bytes)
    with ctx.engine.connect() as conn:
        found = lists.dead_letters(
            conn,
            waiting=waiting,
            service=service,
            tool=tool,
            before=None if key is None else (key[0], key[1]),
            scope=scope,
            most=size + 1,
        )
    rows, more = page_of(found, size, lambda row: cursor.encode(row.occurred_at, row.id))
    items = tuple(DeadLetterItem(**_item(row)) for row in rows)
    return listing.Page[DeadLetterItem](items=items, next=more)


def _item(row: lists.DeadLetter) -> dict[str, Any]:
    return {
        "id": row.id.hex(),
        "at": row.occurred_at,
        "service": row.service,
        "environment": row.environment,
        "tool": row.tool,
        "reference": row.reference_id,
        "trace_id": row.trace_id.hex(),
        "acknowledged_at": row.acked_at,
        "acknowledged_by": row.acked_by,
    }


@router.get("/dead-letters/{letter}", tags=["lists"])
def get_dead_letter(request: Request, ctx: Ctx, letter: LetterId) -> DeadLetterDetail:
    """One dead letter with the payload that its replay needs."""
    principal = ctx.doors.admit(request, Role.ENGINEER)
    return detail(ctx, letter, principal.services)


def detail(ctx: Context, letter: str, scope: Scope) -> DeadLetterDetail:
    """One dead letter.

    Raises:
        ProblemError: 404, where there is none in scope.
    """
    with ctx.engine.connect() as conn:
        row = lists.dead_letter(conn, bytes.fromhex(letter), scope)
    if row is None:
        raise ProblemError(404, "There is no such dead letter.")
    kept = row.attributes or {}
    return DeadLetterDetail(
        **_item(row),
        run_id=kept.get(names.RUN_ID),
        conversation_id=kept.get(names.CONVERSATION_ID),
        code=kept.get(names.CODE),
        reason=kept.get(names.REASON),
        payload=kept.get(names.PAYLOAD),
    )


@router.post("/dead-letters/{letter}/ack", status_code=204, tags=["changes"])
def post_ack(request: Request, ctx: Ctx, letter: LetterId) -> None:
    """Takes a dead letter off the waiting list."""
    acknowledge(request, ctx, letter)


def acknowledge(request: Request, ctx: Context, letter: str) -> None:
    """Takes a dead letter off the waiting list, for an engineer.

    Raises:
        ProblemError: 404, where none waits in scope.
    """
    principal = ctx.doors.admit(request, Role.ENGINEER)
    with ctx.engine.connect() as conn:
        key = bytes.fromhex(letter)
        if not changes.acknowledge(conn, key, principal.name, ctx.now(), principal.services):
            raise ProblemError(404, "No dead letter waits under this id.")
