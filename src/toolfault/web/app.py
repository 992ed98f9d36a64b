"""The application on the web port: pages, API, metrics."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from sqlalchemy import event
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from toolfault.alerts.spec import Spec
from toolfault.store.queries.base import open_engine
from toolfault.web import (
    api,
    api_lists,
    letters,
    pages,
    pages_group,
    pages_letters,
    pages_lists,
    pages_runbooks,
    pages_session,
    pages_tool,
)
from toolfault.web.access import Doorkeeper
from toolfault.web.context import Context
from toolfault.web.guard import Guard
from toolfault.web.lookup import RETENTION_DAYS, Links
from toolfault.web.problems import ProblemError, wrong_values

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from sqlalchemy import Engine
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

    from toolfault.metrics import Collects

_STATIC = Path(__file__).parent / "static"
_RETRY_SECONDS = 5
_UNROUTED = {404: "Nothing is at this address.", 405: "This address does not take that method."}


def _always_ready() -> str | None:
    return None


def make_app(
    url_or_engine: str | Engine,
    *,
    registry: Collects,
    readiness: Callable[[], str | None] = _always_ready,
    base_url: str | None = None,
    is_open: bool = True,
    links: Links | None = None,
    retention_days: int = RETENTION_DAYS,
    alerts: Spec | None = None,
) -> ASGIApp:
    """The application, ready for a server.

    Args:
        url_or_engine: the store; an engine stays its maker's to close.
        registry: this process's own metrics.
        readiness: None when all is well, else the sentence why not.
        base_url: the address people reach the pages at.
        is_open: grant every role to everybody; only for a loopback address.
        links: templates of links to traces and logs.
        retention_days: how many days the details of calls are kept.
        alerts: whose runbooks are shown; the shipped ones by default.
    """
    engine = open_engine(url_or_engine) if isinstance(url_or_engine, str) else url_or_engine
    lookups = open_engine(engine.url, connections=4, keeps_plans=True)
    event.listen(engine, "engine_disposed", lambda _: lookups.dispose())
    app = FastAPI(
        title="toolfault",
        version=version("toolfault"),
        summary="Tool errors of agents, by the reference a user reported.",
        openapi_url="/api/openapi.json",
        docs_url=None,  # both viewers load scripts from elsewhere
        redoc_url=None,
        lifespan=_lifespan(engine, owned=isinstance(url_or_engine, str)),
    )
    app.state.context = Context(
        engine=engine,
        lookups=lookups,
        doors=Doorkeeper(engine, is_open=is_open),
        registry=registry,
        readiness=readiness,
        base_url=base_url.rstrip("/") if base_url else None,
        links=links or Links(),
        retention_days=retention_days,
        alerts=alerts or Spec(),
    )
    _add_routes(app, is_open=is_open)
    _add_handlers(app)
    return Guard(app, is_open=is_open, base_url=base_url)


def _lifespan(
    engine: Engine, *, owned: bool
) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        if owned:
            engine.dispose()

    return lifespan


def _add_routes(app: FastAPI, *, is_open: bool) -> None:
    named = [] if is_open else [api.TOKEN]
    app.include_router(api.router, dependencies=named)  # what is asked for most is tried first
    app.include_router(pages.router)
    app.include_router(api_lists.router, dependencies=named)
    app.include_router(letters.router, dependencies=named)
    app.include_router(api.operation)
    app.include_router(pages_lists.router)
    app.include_router(pages_letters.router)
    app.include_router(pages_runbooks.router)
    app.include_router(pages_group.router)
    app.include_router(pages_tool.router)
    app.include_router(pages_session.router)
    app.mount("/static", StaticFiles(directory=_STATIC), name="static")


def _add_handlers(app: FastAPI) -> None:
    app.add_exception_handler(ProblemError, _refused)
    app.add_exception_handler(HTTPException, _not_routed)
    app.add_exception_handler(RequestValidationError, _not_valid)
    app.add_exception_handler(psycopg.OperationalError, _store_away)
    app.add_exception_handler(OperationalError, _store_away)
    app.add_exception_handler(PoolTimeoutError, _store_away)
    app.add_exception_handler(psycopg.DataError, _not_storable)
    app.add_exception_handler(Exception, _fault)


def _answer(request: Request, problem: ProblemError, **more: object) -> Response:
    if request.url.path.startswith(("/api/", "/metrics")):
        return problem.response(**more)
    return pages.problem_page(request, problem)


async def _refused(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, ProblemError)  # noqa: S101 - registered for this type alone
    return _answer(request, problem)


async def _not_routed(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - as above
    told = _UNROUTED.get(error.status_code, str(error.detail))
    answer = _answer(request, ProblemError(error.status_code, told))
    answer.headers.update(error.headers or {})  # Allow, where the method is the mistake
    return answer


async def _not_valid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - as above
    wrong = wrong_values(error.errors())
    told = " ".join(f"{one['field']}: {one['problem']}" for one in wrong)
    return _answer(request, ProblemError(422, f"A value is not accepted. {told}"), errors=wrong)


async def _store_away(request: Request, _: Exception) -> Response:
    return _answer(
        request, ProblemError(503, "The database does not answer.", retry_after=_RETRY_SECONDS)
    )


async def _not_storable(request: Request, _: Exception) -> Response:
    return _answer(request, ProblemError(422, "A value holds what the store cannot keep."))


async def _fault(request: Request, _: Exception) -> Response:
    return _answer(
        request, ProblemError(500, "This is a fault of ours; the server's log has the details.")
    )
