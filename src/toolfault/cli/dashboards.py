"""`toolfault dashboards`: arguments only, no logic."""
# ruff: noqa: PLC0415 - what needs the server's parts is imported inside its command

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Dashboards for Grafana.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@app.callback()
def dashboards() -> None:
    """Dashboards for Grafana."""


@app.command()
def build(
    directory: Annotated[Path, typer.Argument(help="The folder to write into.")],
    *,
    settings: Annotated[
        Path | None, typer.Option(help="The YAML file that `alerts build` was given.")
    ] = None,
) -> None:
    """Write dashboards and their provisioning.

    Example: toolfault dashboards build dashboards --settings alerts.yml
    """
    from toolfault.alerts import settings_file
    from toolfault.alerts.spec import Spec
    from toolfault.dashboards import build as writer

    spec = Spec() if settings is None else settings_file.read(settings)
    for path in writer.build(directory, spec):
        typer.echo(path)
