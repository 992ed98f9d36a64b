"""Signing in and out."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from toolfault.web.access import SESSION_COOKIE
from toolfault.web.context import Ctx
from toolfault.web.pages import problem_page
from toolfault.web.pages_lists import Form
from toolfault.web.problems import ProblemError

router = APIRouter(include_in_schema=False)

_SESSION_SECONDS = 12 * 3600


@router.get("/sign-in")
def sign_in_page(request: Request, ctx: Ctx) -> Response:
    """Where a token becomes a session."""
    if ctx.doors.identify(request) is not None:
        return RedirectResponse("/", 303)
    raise ProblemError(401, "Sign in with a token.")


@router.post("/sign-in")
def sign_in(request: Request, ctx: Ctx, form: Form) -> Response:
    """Makes a token a session of this browser."""
    secret, back = form.get("token", "").strip(), _own_path(form.get("next", "/"))
    if ctx.doors.verify(request, secret) is None:
        refused = ProblemError(401, "This token is not valid, or was revoked.")
        return problem_page(request, refused, back)
    answer = RedirectResponse(back, 303)
    answer.set_cookie(
        SESSION_COOKIE,
        secret,
        max_age=_SESSION_SECONDS,
        httponly=True,
        samesite="strict",
        secure=(ctx.base_url or str(request.base_url)).startswith("https:"),
    )
    return answer


def _own_path(path: str) -> str:
    """A path of this service; anything that could lead elsewhere is the home page."""
    is_own = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if is_own else "/"


@router.post("/sign-out")
def sign_out(form: Form) -> Response:  # noqa: ARG001 - read for its check
    """Ends the session of this browser."""
    answer = RedirectResponse("/sign-in", 303)
    answer.delete_cookie(SESSION_COOKIE, httponly=True, samesite="strict")
    return answer
