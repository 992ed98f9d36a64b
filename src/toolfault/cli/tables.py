"""Lists in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from toolfault.cli.card import safe

if TYPE_CHECKING:
    from collections.abc import Iterable


def table(items: Iterable[dict[str, Any]], *columns: str) -> Table:
    """One row for each item; a missing value is empty, a list is joined."""
    shown = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for column in columns:
        shown.add_column(column.replace("_", " "), overflow="fold")
    for item in items:
        shown.add_row(*(Text(_cell(item[column])) for column in columns))
    return shown


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return safe(", ".join(map(str, value)))
    return "" if value is None else safe(value)
