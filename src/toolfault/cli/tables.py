"""Lists in the terminal, and as CSV for a spreadsheet."""

from __future__ import annotations

import csv
from io import StringIO
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from toolfault.cli.card import safe

if TYPE_CHECKING:
    from collections.abc import Iterable

#: A spreadsheet takes a cell that begins so for a formula.
_FORMULA = tuple("=+-@\t\r＝＋－＠")


def table(items: Iterable[dict[str, Any]], *columns: str) -> Table:
    """One row for each item; a missing value is empty, a list is joined."""
    shown = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for column in columns:
        # What a reader copies is never broken over lines.
        shown.add_column(
            column.replace("_", " "),
            overflow="fold",
            no_wrap=column == "id" or column.startswith("reference"),
        )
    for item in items:
        shown.add_row(*(Text(_second(column, item[column])) for column in columns))
    return shown


def _second(column: str, value: Any) -> str:
    """A cell of a table; a time is told to the second."""
    told = _cell(value)
    return (
        told[:19] + "Z" if (column == "at" or column.endswith("_at")) and len(told) > 20 else told
    )


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
