"""The page of one dead letter."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from toolfault.store.tokens import Role
from toolfault.web import letters
from toolfault.web.context import Ctx
from toolfault.web.letters import LetterId
from toolfault.web.pages import answer_page
from toolfault.web.pages_lists import Form

router = APIRouter(include_in_schema=False)


@router.get("/dead-letters/{letter}")
def letter_page(request: Request, ctx: Ctx, letter: LetterId) -> Response:
    """One dead letter: what is left to do, and taking it off the list."""
    principal = ctx.doors.admit(request, Role.ENGINEER)
    found = letters.detail(ctx, letter, principal.services)
    return answer_page(ctx, principal, "letter.html", "/health", letter=found)


@router.post("/dead-letters/{letter}/ack")
def acknowledge(request: Request, ctx: Ctx, letter: LetterId, form: Form) -> Response:  # noqa: ARG001 - read for its check
    """Takes a dead letter off the waiting list from its page."""
    letters.acknowledge(request, ctx, letter)
    return RedirectResponse(f"/dead-letters/{letter}", 303)
