"""Refusals in one shape: problem details (RFC 9457) for programs, a page for people."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse

if TYPE_CHECKING:
    from collections.abc import Mapping

MEDIA_TYPE = "application/problem+json"


class ProblemError(Exception):
    """A request that is refused; says in one sentence what to do."""

    def __init__(self, status: int, detail: str, *, retry_after: int | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.retry_after = status, detail, retry_after

    @property
    def title(self) -> str:
        """The name of the status."""
        return HTTPStatus(self.status).phrase

    @property
    def headers(self) -> Mapping[str, str]:
        """What belongs in the head of the answer."""
        headers = {"WWW-Authenticate": "Bearer"} if self.status == 401 else {}
        if self.retry_after is not None:
            headers["Retry-After"] = str(self.retry_after)
        return headers

    def response(self, **more: Any) -> JSONResponse:
        """The answer a program reads."""
        body = {"type": "about:blank", "title": self.title, "status": self.status}
        return JSONResponse(
            {**body, "detail": self.detail, **more},
            self.status,
            headers=dict(self.headers),
            media_type=MEDIA_TYPE,
        )
