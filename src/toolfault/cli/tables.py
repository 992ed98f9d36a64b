"""Lists in the terminal, and as CSV for a spreadsheet."""

from __future__ import annotations

import csv
from io import StringIO
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from toolfault.cli.card import safe

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: A spreadsheet takes a cell that begins so for a formula.
_FORMULA = tuple("=+-@\t\r＝＋－＠")

_WHOLE = ("tool", "code", "id")
_LONGEST = 64  # a longer name than models take is folded, wherever it stands
_ROOM = 34  # what a column that may be folded gets before a spare one is shown
_GAP = 2


def table(items: Iterable[dict[str, Any]], *columns: str) -> Table:
    """One row for each item; a missing value is empty, a list is joined."""
    return _table(_cells(items, columns))


def show(
    items: Sequence[dict[str, Any]],
    columns: Sequence[str],
    spare: Sequence[str],
    *,
    nothing: str,
) -> None:
    """Print a table, or that there is nothing.

    Args:
        items: its rows.
        columns: what it shows where the terminal is wide.
        spare: those of them that are shown only where they hold something and there is room, best
            first.
        nothing: what is told instead of an empty table.
    """
    console = Console()
    if not items:
        console.print(Text(safe(nothing)), soft_wrap=True)
        return
    cells = _cells(items, columns)
    kept = {column: cells[column] for column in columns if column not in spare}
    for column in spare:
        more = kept | {column: cells[column]}
        if any(cells[column][1:]) and _width(more) <= console.width:
            kept = more
    console.width = max(console.width, _width(kept))
    console.print(_table({column: kept[column] for column in columns if column in kept}))


def _cells(items: Iterable[dict[str, Any]], columns: Sequence[str]) -> dict[str, list[Text]]:
    """Each column's heading and values."""
    rows = list(items)
    return {
        column: [
            Text(column.removeprefix("sample_").replace("_", " ")),
            *(Text(_second(column, row[column])) for row in rows),
        ]
        for column in columns
    }


def _table(cells: dict[str, list[Text]]) -> Table:
    shown = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for column, (heading, *values) in cells.items():
        longest = max(value.cell_len for value in (heading, *values))
        whole = _is_whole(column) and longest <= _LONGEST
        shown.add_column(heading, overflow="fold", no_wrap=whole)
    for row in zip(*(values for _, *values in cells.values()), strict=True):
        shown.add_row(*row)
    return shown


def _is_whole(column: str) -> bool:
    """Whether a reader copies what stands there, or reads it at a glance: no line breaks it."""
    return column in _WHOLE or column.endswith("reference") or _is_time(column)


def _width(cells: dict[str, list[Text]]) -> int:
    """How wide the columns are that no line may break, with some room for the others."""
    needed = [
        min(max(cell.cell_len for cell in column), _LONGEST if _is_whole(name) else _ROOM)
        for name, column in cells.items()
    ]
    return sum(needed) + _GAP * (len(needed) - 1)


def _second(column: str, value: Any) -> str:
    """A cell of a table; a time is told to the second."""
    told = _cell(value)
    return told[:19] + "Z" if _is_time(column) and len(told) > 20 else told


def _is_time(column: str) -> bool:
    return column in ("at", "last_seen") or column.endswith("_at")


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return safe(", ".join(map(str, value)))
    return "" if value is None else safe(value)


def as_csv(items: Iterable[dict[str, Any]], *columns: str) -> str:
    """A line of names, then one line for each item; no cell is a formula."""
    written = StringIO()
    lines = csv.writer(written, lineterminator="\n")
    lines.writerow(columns)
    lines.writerows([_inert(item[column]) for column in columns] for item in items)
    return written.getvalue()


def _inert(value: Any) -> str:
    if isinstance(value, (int, float)):
        return str(value)
    text = " ".join(_cell(value).split())
    begins = text.startswith(_FORMULA) or (isinstance(value, str) and value.startswith(_FORMULA))
    return f"'{text}" if begins else text
