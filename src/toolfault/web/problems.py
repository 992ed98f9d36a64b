"""Refusals in one shape: problem details (RFC 9457) for programs, a page for people."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MEDIA_TYPE = "application/problem+json"


_WORDS = (
    (
        ("datetime", "timezone", "date_from"),
        "Give a time with its zone, as in 2026-11-30T14:00:00Z.",
    ),
    (("enum", "literal"), "Give {expected}."),
    (("int_", "greater_than", "less_than"), "Give a number within the bounds of the description."),
    (("string_pattern", "string_too_long"), "It does not have the form this field wants."),
    (("missing",), "It is missing."),
    (("unknown",), "This list has no such parameter."),
    (("json_invalid",), "The body is no JSON."),
)


def wrong_values(errors: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Each value that is not accepted: its field, and in our words what would be."""
    return [{"field": _field(one["loc"]), "problem": _in_words(one)} for one in errors]


def _field(place: tuple[str | int, ...]) -> str:
    """The name of a field; a parameter is given by name alone, however often."""
    source, *inside = place
    return ".".join(map(str, inside[:1] if source == "query" else inside)) or str(source)


def _in_words(error: Mapping[str, Any]) -> str:
    for kinds, sentence in _WORDS:
        if error["type"].startswith(kinds):
            return sentence.format(expected=error.get("ctx", {}).get("expected"))
    return "It is not of the kind this field wants."


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
