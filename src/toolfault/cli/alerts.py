"""`toolfault alerts`: arguments only, no logic."""
# ruff: noqa: PLC0415 - what needs the server's parts is imported inside its command

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Alerting rules for Prometheus and Alertmanager.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@app.callback()
def alerts() -> None:
    """Alerting rules for Prometheus and Alertmanager."""


@app.command()
def build(
    directory: Annotated[Path, typer.Argument(help="The folder to write into.")],
    *,
    settings: Annotated[
        Path | None, typer.Option(help="A YAML file of what differs from the shipped alerts.")
    ] = None,
) -> None:
    """Write rules, Alertmanager's configuration and runbooks.

    Example: toolfault alerts build alerts --settings alerts.yml
    """
    from toolfault.alerts import build as writer
    from toolfault.alerts import settings_file
    from toolfault.alerts.spec import Spec

    spec = Spec() if settings is None else settings_file.read(settings)
    for path in writer.build(directory, spec):
        typer.echo(path)
