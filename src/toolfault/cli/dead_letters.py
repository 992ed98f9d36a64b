"""`toolfault dead-letters`: work that waits for somebody to do it again or write it off."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console

from toolfault import client, settings
from toolfault.cli import ids, tables

app = typer.Typer(
    help="Work that waits for somebody to do it again or write it off; without a command: list.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Url = Annotated[str | None, typer.Option(help="The service to ask.")]
Filter = Annotated[str | None, typer.Option(help="Only these.")]
Size = Annotated[int, typer.Option(min=1, max=200, help="How many at most.")]
LetterId = Annotated[
    str,
    typer.Argument(callback=ids.letter, metavar="ID", help="As `dead-letters list` shows it."),
]

_COLUMNS = ("at", "service", "tool", "reference", "id")
_SPARE = ("reference", "service")


@app.callback(invoke_without_command=True)
def waiting(
    context: typer.Context, *, size: Size = 20, url: Url = None, as_json: AsJson = False
) -> None:
    """List them where no command is given."""
    if context.invoked_subcommand is None:
        list_(size=size, url=url, as_json=as_json)


@app.command("list")
def list_(
    *,
    service: Filter = None,
    tool: Filter = None,
    size: Size = 20,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """List what waits, newest first.

    Example: toolfault dead-letters list --tool refund_order
    """
    asked = settings.read(url=url)
    found = client.page(asked, "dead-letters", service=service, tool=tool, size=size)
    if as_json:
        typer.echo(json.dumps(found, indent=2))
    else:
        tables.show(found["items"], _COLUMNS, _SPARE, nothing="No dead letters.")


@app.command()
def show(letter: LetterId, *, url: Url = None, as_json: AsJson = False) -> None:
    """Show one with the payload that its replay needs.

    Example: toolfault dead-letters show 0123456789abcdef0123456789abcdef
    """
    found = client.dead_letter(settings.read(url=url), letter)
    told = found | {"payload": json.dumps(found["payload"], ensure_ascii=False)}
    rows = [{"what": name.replace("_", " "), "is": value} for name, value in told.items()]
    if as_json:
        typer.echo(json.dumps(found, indent=2))
    else:
        Console().print(tables.table(rows, "what", "is"))


@app.command()
def ack(letter: LetterId, *, url: Url = None) -> None:
    """Take one off the list. Exit code 1 when none waits under that id.

    Example: toolfault dead-letters ack 0123456789abcdef0123456789abcdef
    """
    if not client.acknowledge(settings.read(url=url), letter):
        raise client.ServiceError(f"No dead letter waits under {letter}.")
    typer.echo(f"Acknowledged: {letter}.")
