"""The card of a reference in the terminal, from the API's answer."""

from __future__ import annotations

import json
import re
import shlex
import unicodedata
from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

_COLOURS = {"ok": "green", "declined": "blue", "cancelled": "dim", "invalid": "yellow"}
_TRACE = re.compile(r"\s*[0-9A-Fa-f]{32}\s*")
_UNSEEN = {"Cc", "Cf", "Co", "Cs"}  # control, bidirectional, private: a terminal may obey them


def safe(value: Any) -> str:
    """Text from elsewhere as a terminal may show it."""
    return "".join(
        symbol if symbol == "\n" or unicodedata.category(symbol) not in _UNSEEN else "�"
        for symbol in str(value)
    )


def card(answer: dict[str, Any], pasted: str) -> RenderableType:
    """What is known about a reference: every call it names, or why there is none."""
    shown = map(_match, answer["matches"]) if answer["matches"] else [_nothing(answer, pasted)]
    return Group(*shown, *_others(answer["others"]))


def _others(references: list[str]) -> list[Text]:
    """The rest of what was pasted, each as a command of its own."""
    commands = [Text(safe(f"  toolfault lookup {reference}")) for reference in references]
    return [Text("The text names other references too:"), *commands] if commands else []


def _nothing(answer: dict[str, Any], pasted: str) -> RenderableType:
    parts = [_title(answer["title"]), Text(safe(answer["explanation"]))]
    parts.append(Text(safe(answer["next_step"])))
    if answer["state"] in ("unknown", "mistyped") and not answer["suggestions"]:
        parts.append(Text(safe(_other_id(pasted))))
    if answer["suggestions"]:
        parts.append(Text("Did you mean one of these?"))
        parts += [_suggestion(suggestion) for suggestion in answer["suggestions"]]
    return Panel(Group(*parts), title=Text(safe(answer["reference"])), title_align="left")


def _other_id(pasted: str) -> str:
    """The command for what may be no reference but the id of a trace or a conversation."""
    if _TRACE.fullmatch(pasted):
        return f"For the errors of a trace: toolfault errors --trace {pasted.strip().lower()}"
    words = pasted.split()
    named = shlex.quote(words[0]) if len(words) == 1 else "ID"
    return f"For the errors of a conversation: toolfault errors --conversation {named}"


def _title(sentence: str) -> Text:
    """Inside the box, where it is wrapped; the box's own title would be cut."""
    return Text(safe(sentence), "bold")


def _suggestion(found: dict[str, Any]) -> Text:
    tool, outcome = found["tool"] or "a tool", found["outcome"] or "outcome not known"
    return Text(safe(f"  {found['reference']}  {tool}, {outcome}, {found['at']}"))


def _match(match: dict[str, Any]) -> RenderableType:
    words = match["words"]
    rows: list[tuple[str, Any]] = [
        ("Did it take effect?", f"{words['effect']}. {words['effect_how']}"),
        ("Known incident?", f"{words['incident']}. {words['incident_detail']}"),
        ("Who has it?", f"{words['owner']}. {words['owner_detail']}"),
        ("Tell the user", words["tell_user"]),
        ("Attempts", match["attempts"]),
        ("Model was told", _told(match["envelope"])),
        ("Conversation", match["conversation_id"]),
        ("Trace", match["trace_id"]),
        ("Exception", _exception(match)),
    ]
    return Panel(
        Group(_title(words["title"]), _headline(match), Text(""), _table(rows)),
        title=Text(safe(match["reference"])),
        title_align="left",
    )


def _headline(match: dict[str, Any]) -> Text:
    outcome = match["outcome"] or "outcome not known"
    marks = [outcome, match["code"], match["reason"], match["action"] and f"-> {match['action']}"]
    place = f"{match['tool']} of {match['service']}, {match['started_at'] or match['received_at']}"
    told = Text(safe("  ".join(mark for mark in marks if mark)), _COLOURS.get(outcome, "red"))
    return told.append(safe(f"\n{place}"), "default")


def _told(envelope: dict[str, Any] | None) -> str | None:
    return None if envelope is None else json.dumps(envelope, indent=2, ensure_ascii=False)


def _exception(match: dict[str, Any]) -> str | None:
    lines = [f"{detail['type']}: {detail['message']}" for detail in match["exceptions"]]
    return "\n".join(lines) or None


def _table(rows: list[tuple[str, Any]]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        if value is not None:
            table.add_row(name, Text(safe(value)))
    return table
