"""Errors that a tool returned instead of raising them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from toolfault import taxonomy
from toolfault.errors import ToolError, ToolFailure, ToolRefusal
from toolfault.taxonomy import Action, Code

#: What frameworks tell the model of an exception when they hide it.
GENERIC_MESSAGE = "An internal error occurred."
_WRAPPERS = ("result", "output", "message", "error")


def is_envelope(result: Any) -> bool:
    """Whether a guarded tool made it."""
    if not isinstance(result, Mapping):
        return False
    status = result.get("status")
    if status in ("ok", "declined"):
        return "output" in result
    error = result.get("error")
    return status == "error" and isinstance(error, Mapping) and error.get("code") in set(Code)


def error_in(result: Any, tool: str) -> ToolError | None:
    """The error a result tells of; None if it tells of none."""
    if is_generic(result):
        return ToolFailure(tool, taxonomy.GENERIC_ERROR, code=Code.INTERNAL)
    if is_envelope(result):
        return _of_envelope(result, tool)
    return returned_error(tool) if _says_error(result) else None


def error_in_mcp(result: Any, tool: str) -> ToolError | None:
    """The error in a result of MCP: its structure first, then its texts, then its flag."""
    told = [plain(result), *_texts(result)]
    found = next((error for one in told if (error := error_in(one, tool)) is not None), None)
    return found or (returned_error(tool) if _says_error(result) else None)


def plain(result: Any) -> Any:
    """What the tool's author returned, as far as MCP kept it."""
    structure = getattr(result, "structured_content", None)
    if isinstance(structure, dict) and set(structure) == {"result"}:
        return structure["result"]
    if structure is None:
        texts = list(_texts(result))
        return texts[0] if len(texts) == 1 else None
    return structure


def _texts(result: Any) -> Iterator[Any]:
    for block in getattr(result, "content", None) or ():
        if isinstance(text := getattr(block, "text", None), str):
            yield in_text(text)


def in_text(text: str) -> Any:
    """The object a text spells, else the text."""
    if text.startswith("{"):
        with suppress(ValueError):
            return json.loads(text)
    return text


def returned_error(tool: str) -> ToolError:
    """What is known of an error that is only words: its author told it, nobody knows its kind."""
    return ToolFailure(tool, taxonomy.RETURNED_ERROR, code=Code.INTERNAL)


def is_generic(result: Any) -> bool:
    """Whether it is the message that hides an exception from the model."""
    if isinstance(result, str):
        return result.strip() == GENERIC_MESSAGE
    if isinstance(result, Mapping):
        return any(is_generic(result[key]) for key in _WRAPPERS if key in result)
    return False


def _says_error(result: Any) -> bool:
    if not isinstance(result, Mapping):
        return getattr(result, "is_error", getattr(result, "isError", False)) is True
    if result.get("isError") is True or result.get("is_error") is True:
        return True
    return bool(result.get("error")) or result.get("status") == "error"


def _of_envelope(result: Mapping[str, Any], tool: str) -> ToolError | None:
    if result["status"] == "ok":
        return None
    if result["status"] == "declined":
        return ToolRefusal(tool, taxonomy.RETURNED_ERROR, str(result["output"]))
    error = result["error"]
    told = {key: error[key] for key in ("message", "field", "retry_after") if key in error}
    try:
        return ToolFailure(
            tool,
            error.get("reason", taxonomy.RETURNED_ERROR),
            code=error["code"],
            transient=error.get("action") == Action.RETRY_LATER,
            **told,
        )
    except (TypeError, ValueError):  # somebody else's envelope, with fields of other kinds
        return ToolFailure(tool, taxonomy.RETURNED_ERROR, code=error["code"])
