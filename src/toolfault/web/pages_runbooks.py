"""The runbooks of the alerts, where the alerts' own links lead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from toolfault.alerts.runbooks import INTRODUCTION, sections
from toolfault.web.context import Ctx
from toolfault.web.pages import storeless_page

if TYPE_CHECKING:
    from collections.abc import Iterator

router = APIRouter(include_in_schema=False)


@router.get("/runbooks")
def runbooks_page(request: Request, ctx: Ctx) -> Response:
    """Every section of the runbooks.

    For everybody and without the store: an alert may be about the very database that a token is
    looked up in, and there is nothing here about anybody's calls.
    """
    return storeless_page(
        request,
        "runbooks.html",
        introduction=INTRODUCTION,
        sections=sections(ctx.alerts),
        spans=_spans,
    )


def _spans(text: str) -> Iterator[tuple[bool, str]]:
    """The stretches of a text, and whether each is code: what stands in backquotes."""
    for at, part in enumerate(text.split("`")):
        yield at % 2 == 1, part
