"""What frameworks tell of tools and of arguments that do not match."""

from __future__ import annotations

from typing import Any

from toolfault import conventions as c
from toolfault.telemetry.declared import Tool


def annotated(name: str, annotations: Any, *, remote: bool = False) -> Tool:
    """A tool with what MCP's annotations say of it; both spellings of them are read.

    Args:
        name: of the tool.
        annotations: what its server says of it.
        remote: a server of another program runs it.
    """
    return Tool(
        name=name,
        type=c.EXTENSION if remote else c.FUNCTION,
        writes=not _hint(annotations, "read_only_hint", "readOnlyHint"),
        idempotent=_hint(annotations, "idempotent_hint", "idempotentHint"),
    )


def _hint(annotations: Any, name: str, on_the_wire: str) -> bool:
    if isinstance(annotations, dict):
        return annotations.get(name, annotations.get(on_the_wire)) is True
    if hasattr(annotations, name):
        return getattr(annotations, name) is True
    return getattr(annotations, on_the_wire, None) is True


def field_of(error: BaseException) -> str | None:
    """The first argument that a pydantic `ValidationError`, or what it was raised from, names."""
    link: BaseException | None = error
    while link is not None:
        errors = getattr(link, "errors", None)
        if callable(errors):
            named = next((one["loc"] for one in errors() if one.get("loc")), ())
            return ".".join(str(part) for part in named) or None
        link = link.__cause__
    return None
