"""What is wrong with a field, in the words of the file rather than of the program that reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic_core import ErrorDetails

_TEXTS = {
    "string_type": "this must be text",
    "string_too_short": "this must not be empty",
    "float_type": "this must be a number",
    "float_parsing": "this must be a number",
    "int_type": "this must be a whole number",
    "int_parsing": "this must be a whole number",
    "int_from_float": "this must be a whole number",
    "bool_type": "this must be true or false",
    "bool_parsing": "this must be true or false",
    "invalid_key": "the name of a setting must be text",
}
_LIMITS = {
    "greater_than": "this must be above {gt:g}",
    "greater_than_equal": "this must be at least {ge:g}",
    "less_than_equal": "this must be at most {le:g}",
    "string_too_long": "this may have at most {max_length} characters",
    "too_short": "this must have at least {min_length}",
    "literal_error": "this must be {expected}",
}


def causes(errors: Iterable[ErrorDetails]) -> list[ErrorDetails]:
    """Without what only follows: of a list whose item is wrong it is also said that it is too short."""
    found = [*errors]
    return [
        error
        for error in found
        if not any(_is_inside(other["loc"], error["loc"]) for other in found)
    ]


def _is_inside(field: tuple[str | int, ...], of: tuple[str | int, ...]) -> bool:
    return len(field) > len(of) and field[: len(of)] == of


def words(error: ErrorDetails, usual: Any) -> str:
    """The mistake, with an example made of what is usual there."""
    kind, limits = error["type"], error.get("ctx", {})
    if kind in _LIMITS:
        return _LIMITS[kind].format(**limits)
    if kind == "string_type":
        return _TEXTS[kind] + _kind_of_text(error["input"], usual)
    if kind in {"string_pattern_mismatch", "value_error"}:  # the latter of an address only
        is_address = "://" in limits.get("pattern", "://")
        example = "http://localhost:3000" if is_address else "5m"
        return f"this must be written like {example}"
    if kind == "tuple_type":
        return f"this must be a list{_example(usual)}"
    if kind in {"dataclass_type", "dict_type"}:
        limited = isinstance(usual, dict) and "severity" in usual
        return f"this must be a mapping{' of its limits' if limited else ''}{_example(usual)}"
    return _TEXTS.get(kind, error["msg"])


def _kind_of_text(given: Any, usual: Any) -> str:
    """A number lacks its unit; where nothing is, a `#` may have begun a comment."""
    if str(usual)[:1].isdigit():
        return " with a unit, like 90s or 5m"
    return "; put text that begins with # in quotes" if given is None else ""


def _example(usual: Any) -> str:
    return f" (for example `{_shown(usual)}`)" if usual else ""


def _shown(usual: Any) -> str:
    """One setting is example enough: of an alert a limit."""
    if isinstance(usual, dict):
        numbers = [name for name, value in usual.items() if isinstance(value, float)]
        name = (numbers or [*usual])[0]
        return f"{{{name}: {_shown(usual[name])}}}"
    if isinstance(usual, tuple):
        return f"[{', '.join(map(_shown, usual))}]"
    return f"{usual:g}" if isinstance(usual, float) else str(usual)
