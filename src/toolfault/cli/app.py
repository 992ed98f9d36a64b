"""The commands: arguments only, no logic.

What needs the server's parts is imported inside its command: they take a second, and a look-up
needs none of them.
"""
# ruff: noqa: PLC0415 - as said above

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer
from rich.console import Console

from toolfault import client, settings
from toolfault.cli import alerts, check, dashboards, dead_letters, importing, lists, tables
from toolfault.cli.card import card
from toolfault.reference import all_in, candidates
from toolfault.settings import SettingError, StartError
from toolfault.store.errors import StoreError

if TYPE_CHECKING:
    from toolfault.ports import Addresses


def _typer(help_: str) -> typer.Typer:
    return typer.Typer(
        help=help_,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )


app = _typer("Tool errors of agents: collect them, and look a reference up.")
db = _typer("The database's schema and totals.")
token = _typer("Tokens, for a service that other machines reach.")
app.add_typer(db, name="db")
app.add_typer(token, name="token")
app.add_typer(alerts.app, name="alerts")
app.add_typer(dashboards.app, name="dashboards")
app.add_typer(dead_letters.app, name="dead-letters")
app.command()(lists.errors)
app.command()(lists.groups)
app.command()(check.check)
app.command("import")(importing.import_)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DataDir = Annotated[Path | None, typer.Option(help="Folder of the embedded PostgreSQL.")]
Host = Annotated[str | None, typer.Option(help="Address to open the ports on.")]
Port = Annotated[int | None, typer.Option(min=0, max=65535, help="Its port; 0 takes a free one.")]
Url = Annotated[str | None, typer.Option(help="The service to ask.")]


#: Characters that an address may hold; of a longer paste the references alone are asked for.
_LONGEST_ASKED = 2000


def _tell_version(asked: bool) -> None:
    if asked:
        typer.echo(f"toolfault {version('toolfault')}")
        raise typer.Exit


@app.callback()
def main(
    *,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_tell_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Tool errors of agents: collect them, and look a reference up."""


def run() -> None:
    """Run a command; a mistake of the user is one sentence, never a traceback."""
    try:
        app(prog_name="toolfault")
    except (StartError, StoreError, client.ServiceError) as mistake:
        sys.stderr.write(f"toolfault: {mistake}\n")
        sys.exit(2 if isinstance(mistake, SettingError) else 1)


def _print(data: Any, shown: Any, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(data, indent=2))
    else:
        Console().print(shown)


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
    from toolfault import server

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
    *,
    once: Annotated[bool, typer.Option("--once", help="Stop when done; free ports.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a scheduling agent whose tools fail, and look each failure up.

    Example: toolfault demo --once --json
    """
    from toolfault.demo import stage

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
    pasted = given = " ".join(reference).strip()
    if not given:
        raise SettingError("Nothing to look up. Give a reference, or the text it stands in.")
    if len(pasted) > _LONGEST_ASKED:
        pasted = " ".join(all_in(pasted)) or (candidates(pasted) or [pasted])[0]
    answer = client.look_up(settings.read(url=url), pasted[:_LONGEST_ASKED])
    _print(answer, None if as_json else card(answer, given), as_json=as_json)
    raise typer.Exit(0 if answer["matches"] else 1)


@app.command()
def erase(
    *,
    conversation: Annotated[str, typer.Option(help="Id of the conversation.")],
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Erase what is stored about a conversation.

    Example: toolfault erase --conversation c-1234
    """
    from toolfault.cli import database

    gone = database.erase(settings.read(data_dir=data_dir), conversation)
    told = ", ".join(f"{rows} {kind.replace('_', ' ')}" for kind, rows in gone.items())
    _print(gone, f"Erased: {told}.", as_json=as_json)


@db.command()
def upgrade(
    *,
    read_password_file: Annotated[
        Path | None,
        typer.Option(help="Let the role toolfault_read, for dashboards, in with this password."),
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Bring the schema to this version.

    Example: TOOLFAULT_DATABASE_URL=postgresql://... toolfault db upgrade
    """
    from toolfault.cli import database

    typer.echo(database.upgrade(settings.read(data_dir=data_dir), read_password_file))


@db.command()
def current(*, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Show the schema's revision and the one this version needs.

    Example: toolfault db current --json
    """
    from toolfault.cli import database

    revisions = database.current(settings.read(data_dir=data_dir))
    _print(revisions, database.told(revisions), as_json=as_json)


@db.command()
def rebase(*, data_dir: DataDir = None) -> None:
    """Start the totals at 0 again, after a restore or a failover that lost rows.

    Example: toolfault db rebase
    """
    from toolfault.cli import database

    typer.echo(database.restart_totals(settings.read(data_dir=data_dir)))


@token.command()
def create(
    name: Annotated[str, typer.Argument(help="Whose it is.")],
    *,
    role: Annotated[list[str], typer.Option(help="ingest, scrape, support, engineer or admin.")],
    service: Annotated[list[str] | None, typer.Option(help="The only services it sees.")] = None,
    secret_file: Annotated[
        Path | None,
        typer.Option(help="Write the secret there instead; a file that exists is kept."),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Put the new secret in the place of that file's.")
    ] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Make a token and show its secret, once.

    Example: toolfault token create support-desk --role support
    """
    from toolfault.cli import database

    asked = settings.read(data_dir=data_dir)
    if replace and secret_file is None:
        raise SettingError("--replace needs the file: give --secret-file FILE as well.")
    if secret_file is not None:
        put = database.replace_token if replace else database.keep_token
        _print(*put(asked, name, role, service, secret_file), as_json=as_json)
        return
    made = database.make_token(asked, name, role, service)
    _print(made, made["secret"], as_json=as_json)


@token.command("list")
def list_(*, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List tokens, without their secrets.

    Example: toolfault token list
    """
    from toolfault.cli import database

    found = database.tokens(settings.read(data_dir=data_dir))
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    columns = ("id", "name", "roles", "services", "created_at", "revoked_at")
    tables.show(found, columns, ("services", "created_at"), nothing="No tokens.")


@token.command()
def revoke(
    id_: Annotated[UUID, typer.Argument(metavar="ID", help="As `token list` shows it.")],
    *,
    data_dir: DataDir = None,
) -> None:
    """End a token.

    Example: toolfault token revoke 00000000-0000-0000-0000-000000000000
    """
    from toolfault.cli import database

    typer.echo(database.revoke(settings.read(data_dir=data_dir), id_))
