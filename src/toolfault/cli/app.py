"""The commands: arguments only, no logic."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from toolfault import client, settings
from toolfault.cli.card import card
from toolfault.reference import candidates
from toolfault.settings import SettingError, StartError
from toolfault.store.errors import StoreError

if TYPE_CHECKING:
    from toolfault.server import Addresses

app = typer.Typer(
    help="Tool errors of agents: collect them, and look a reference up.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
db = typer.Typer(help="The database's schema.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(db, name="db")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DataDir = Annotated[Path | None, typer.Option(help="Folder of the embedded PostgreSQL.")]
Host = Annotated[str | None, typer.Option(help="Address to open the ports on.")]
Port = Annotated[int | None, typer.Option(min=0, max=65535, help="Its port; 0 takes a free one.")]
Url = Annotated[str | None, typer.Option(help="The service to ask.")]


def run() -> None:
    """Run a command; a mistake of the user is one sentence, never a traceback."""
    try:
        app(prog_name="toolfault")
    except (StartError, StoreError, client.ServiceError) as mistake:
        sys.stderr.write(f"toolfault: {mistake}\n")
        sys.exit(2 if isinstance(mistake, SettingError) else 1)


@app.command()
def up(
    *,
    data_dir: DataDir = None,
    host: Host = None,
    grpc_port: Port = None,
    http_port: Port = None,
    web_port: Port = None,
    as_json: AsJson = False,
) -> None:
    """Start the service; Ctrl-C stops it.

    Example: toolfault up --data-dir ./data
    """
    chosen = settings.read(
        data_dir=data_dir, host=host, grpc_port=grpc_port, http_port=http_port, web_port=web_port
    )
    from toolfault import server  # noqa: PLC0415 - a second of imports that look-ups do not need

    server.run(chosen, _addresses_as_json if as_json else _addresses)


def _addresses(addresses: Addresses) -> None:
    typer.echo(
        "toolfault is up; Ctrl-C stops it.\n"
        f"  pages, API, metrics  {addresses.web}\n"
        f"  OTLP over gRPC       {addresses.grpc}\n"
        f"  OTLP over HTTP       {addresses.http}"
    )


def _addresses_as_json(addresses: Addresses) -> None:
    typer.echo(json.dumps(asdict(addresses)))


@app.command()
def demo(
    *, once: Annotated[bool, typer.Option(help="Stop when done.")] = False, as_json: AsJson = False
) -> None:
    """Run a scheduling agent whose tools fail, and look each failure up.

    Example: toolfault demo --once --json
    """
    from toolfault.demo import stage  # noqa: PLC0415 - as above

    stage.play(once=once, as_json=as_json)


@app.command()
def lookup(
    reference: Annotated[list[str], typer.Argument(help="A reference, or the text it stands in.")],
    *,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Look a reference up. Exit code 1 when there is nothing to show.

    Example: toolfault lookup 938N-KRKA-S18P
    """
    pasted = " ".join(reference)
    found = (candidates(pasted) or [pasted[:64]])[0]
    answer = client.look_up(settings.read(url=url), found)
    if as_json:
        typer.echo(json.dumps(answer, indent=2))
    else:
        Console().print(card(answer))
    raise typer.Exit(0 if answer["matches"] else 1)


@db.command()
def upgrade(*, data_dir: DataDir = None) -> None:
    """Bring the schema to this version.

    Example: TOOLFAULT_DATABASE_URL=postgresql://... toolfault db upgrade
    """
    from toolfault.cli import database  # noqa: PLC0415 - as above

    typer.echo(database.upgrade(settings.read(data_dir=data_dir)))


@db.command()
def current(*, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Show the schema's revision and the one this version needs.

    Example: toolfault db current --json
    """
    from toolfault.cli import database  # noqa: PLC0415 - as above

    revisions = database.current(settings.read(data_dir=data_dir))
    typer.echo(json.dumps(revisions) if as_json else database.told(revisions))
