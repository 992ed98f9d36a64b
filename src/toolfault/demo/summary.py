"""The demo on the screen: the conversation as it runs, the calls as a table."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Self

from rich import box
from rich.live import Live
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from types import TracebackType

    from rich.console import Console

_COLOURS = {"ok": "green", "declined": "blue", "invalid": "yellow"}
_USUAL_PAGE = "http://127.0.0.1:8700"


class Summary:
    """Shows what the agent says; a context manager, live inside it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        for column in ("tool", "outcome", "the model is told", "effect", "reference"):
            self._table.add_column(column, no_wrap=column != "outcome", overflow="fold")
        self._live = Live(self._table, console=console, refresh_per_second=8)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def hear(self, said: dict[str, Any]) -> None:
        """One line of the agent: words of the user or the agent, or a call."""
        if "user" in said:
            self._console.print(Text(f"user   {said['user']}", "bold"), soft_wrap=True)
        elif "agent" in said:
            self._console.print(Text(f"agent  {said['agent']}"), soft_wrap=True)
        else:
            self._table.add_row(*_cells(said))

    def closing(self, web: str, found: list[dict[str, Any]], *, stays: bool) -> None:
        """What to do next."""
        crash = next(call for call in found if call["code"] == "INTERNAL")["reference"]
        self._console.print(f"\nEach of the {len(found)} references was looked up again.")
        if stays:
            elsewhere = "" if web == _USUAL_PAGE else f" --url {web}"
            self._console.print(
                f"Look up this reference: {crash}\n"
                f"  page      {web}/r/{crash}\n"
                f"  terminal  {sys.argv[0]} lookup {crash}{elsewhere}\n"
                "Ctrl-C stops the demo and deletes its data.",
                soft_wrap=True,
                highlight=False,
            )

    def alerted(self, incident: dict[str, Any] | None, *, heard: bool) -> None:
        """What on-call was told meanwhile."""
        if incident is not None:
            told = (
                f"Alert {incident['name']}: {incident['summary']}\n"
                "It is on the card and ends by itself. The demo looks back over seconds and is "
                "told by one crash; the shipped limits, which /runbooks shows, ask for more."
            )
        elif heard:
            told = "No alert fired within a minute."
        else:
            told = (
                "With Prometheus and Alertmanager an alert would fire now:\n"
                "  sudo apt-get install prometheus prometheus-alertmanager"
            )
        self._console.print(told, soft_wrap=True, highlight=False)


def _cells(said: dict[str, Any]) -> list[Text]:
    error = said["envelope"].get("error", {})
    colour = _COLOURS.get(said["outcome"], "red")
    return [
        Text(said["tool"]),
        Text(f"{said['outcome']} {error.get('code', '')}", colour),
        Text(error.get("action", "")),
        Text(said["effect"]),
        Text(said["reference"] or ""),
    ]
