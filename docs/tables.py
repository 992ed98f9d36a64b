"""Writes the tables of the documentation from the code: `python docs/tables.py`.

A table stands between `<!-- table: name -->` and `<!-- end -->`; the tests compare it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import toolfault
from toolfault import conventions, taxonomy
from toolfault.settings import PREFIX, Settings
from toolfault.telemetry.declared import Tool
from toolfault.testing import capture_tool_errors

HERE = Path(__file__).parent
_BLOCK = re.compile(r"(<!-- table: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)

RAISED: dict[str, Callable[[], BaseException | None]] = {
    "nothing": lambda: None,
    'ToolFailure(t, "down", transient=True)': lambda: toolfault.ToolFailure("t", "down", transient=True),
    'ToolFailure(t, "busy", transient=True, code="RATE_LIMITED")': lambda: toolfault.ToolFailure("t", "busy", transient=True, code="RATE_LIMITED"),
    'ToolFailure(t, "bad_gateway", code="UNAVAILABLE")': lambda: toolfault.ToolFailure("t", "bad_gateway", code="UNAVAILABLE"),
    'ToolFailure(t, "no_booking", code="NOT_FOUND")': lambda: toolfault.ToolFailure("t", "no_booking", code="NOT_FOUND"),
    'ToolFailure(t, "slot_taken", code="CONFLICT")': lambda: toolfault.ToolFailure("t", "slot_taken", code="CONFLICT"),
    'ToolFailure(t, "key_expired", code="PERMISSION_DENIED")': lambda: toolfault.ToolFailure("t", "key_expired", code="PERMISSION_DENIED"),
    'ToolFailure(t, "bug", code="INTERNAL")': lambda: toolfault.ToolFailure("t", "bug", code="INTERNAL"),
    "KeyError(...), or any other exception": lambda: KeyError("x"),
    "ToolResultError(t)": lambda: toolfault.ToolResultError("t"),
    "ToolTimedOutError(t)": lambda: toolfault.ToolTimedOutError("t"),
    'ToolRefusal(t, "too_late", "The train has left.")': lambda: toolfault.ToolRefusal("t", "too_late", "The train has left."),
    "ToolNotPermittedError(t)": lambda: toolfault.ToolNotPermittedError("t"),
    'ToolArgumentValidationError(t, field="date")': lambda: toolfault.ToolArgumentValidationError("t", field="date"),
    "ToolNotFoundError(t)": lambda: toolfault.ToolNotFoundError("t"),
}  # fmt: skip


def _call(
    error: BaseException | None, *, writes: bool
) -> tuple[toolfault.testing.ToolCall, object]:
    @toolfault.guard("t", writes=writes, budget_limit=1000)
    def tool() -> None:
        if error is not None:
            raise error

    with capture_tool_errors() as reported, toolfault.run():
        answer = tool()
    return reported.calls[0], answer


def raised() -> str:
    """What each error becomes, for a tool that writes and for one that reads."""
    lines = [
        "| raised | outcome | code | effect | action | effect, action of a reading tool | what the model reads |",
        "|---|---|---|---|---|---|---|",
    ]
    for shown, make in RAISED.items():
        writing, answer = _call(make(), writes=True)
        reading, _ = _call(make(), writes=False)
        lines.append(
            f"| `{shown}` | {writing.outcome} | {writing.code or ''} | {writing.effect} "
            f"| {writing.action} | {reading.effect}, {reading.action} | {_read(answer)} |"
        )
    return "\n".join(lines)


def _read(answer: object) -> str:
    told = answer if isinstance(answer, dict) else {}
    if told.get("status") != "error":
        return str(told.get("output", "")).replace("\n", " ").replace("<", "&lt;") or "the output"
    return re.sub(r"\(ref [^)]*\)", "(ref …)", told["error"]["message"])


def codes() -> str:
    """The closed set of codes with the message each gives where the author wrote none."""
    lines = ["| code | message where the author wrote none |", "|---|---|"]
    lines += [f"| `{code}` | {message} |" for code, message in taxonomy.MESSAGES.items()]
    return "\n".join(lines)


def options() -> str:
    """What `guard` and the announced tool know."""
    fields = Tool.__dataclass_fields__
    told = {name: conventions.__dict__.get(name.upper()) for name in fields}
    lines = ["| of a tool | attribute of `toolfault.tool_declared` |", "|---|---|"]
    lines += [
        f"| `{name}` | `{attribute or conventions.TOOL_NAME}` |" for name, attribute in told.items()
    ]
    return "\n".join(lines)


def record() -> str:
    """The attributes of the record."""
    names = sorted(conventions.RECORD)
    return "\n".join(
        ["| attribute of span and event |", "|---|", *(f"| `{name}` |" for name in names)]
    )


def run_events() -> str:
    """Every event name."""
    names = sorted(
        value
        for name, value in vars(conventions).items()
        if isinstance(value, str)
        and value.startswith(conventions.EVENT_PREFIX)
        and value not in conventions.RECORD
        and name in _EVENTS
    )
    return "\n".join(["| event |", "|---|", *(f"| `{name}` |" for name in names)])


_EVENTS = {
    "TOOL_ERROR", "TOOL_CALL", "TOOL_DECLARED", "BUDGET_EXHAUSTED", "UNREGISTERED_TOOL",
    "BACKSTOP_REACHED", "GENERIC_ERROR", "MODEL_CALL", "MODEL_ERROR", "MODEL_RETRY",
    "RUN_LIMIT_EXCEEDED", "DEAD_LETTER", "TELEMETRY_DROPPED", "EXCEPTION", "LOG",
}  # fmt: skip


def service_settings() -> str:
    """Every setting of the service."""
    lines = ["| variable | default | what it says |", "|---|---|---|"]
    for setting in fields(Settings):
        default = getattr(Settings(data_dir=Path("~/.local/share/toolfault")), setting.name)
        shown = "" if default is None else f"`{default}`"
        lines.append(
            f"| `{PREFIX}{setting.name.upper()}` | {shown} | {setting.metadata['sentence']} |"
        )
    return "\n".join(lines)


TABLES: dict[str, Callable[[], str]] = {
    "raised": raised,
    "codes": codes,
    "options": options,
    "record": record,
    "events": run_events,
    "settings": service_settings,
}


def rendered(text: str) -> str:
    """`text` with every table in it made anew."""
    return _BLOCK.sub(lambda block: f"{block[1]}{TABLES[block[2]]()}\n{block[3]}", text)


if __name__ == "__main__":
    for page in HERE.glob("*.md"):
        page.write_text(rendered(page.read_text()))
