"""`toolfault check`: arguments only, no logic."""
# ruff: noqa: PLC0415 - gRPC takes its time; other commands need none of it

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Annotated

import typer

from toolfault import settings
from toolfault.cli.card import safe

if TYPE_CHECKING:
    from toolfault.check.step import Step

_MARKS = {"ok": "ok     ", "failed": "FAILED ", "skipped": "-      "}


def check(
    *,
    endpoint: Annotated[
        str | None, typer.Option(help="Where agents send; else OTEL_EXPORTER_OTLP_ENDPOINT.")
    ] = None,
    protocol: Annotated[str | None, typer.Option(help="grpc or http/protobuf.")] = None,
    url: Annotated[str | None, typer.Option(help="The service to ask.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Send a call as an agent on this machine would, and look it up. Exit code 1 if that fails.

    Example: toolfault check --endpoint http://collector:4318 --url http://toolfault:8700
    """
    from toolfault.check import checks
    from toolfault.check import endpoint as endpoints

    where = settings.read(url=url)
    to = endpoints.read(os.environ, endpoint, protocol)
    if not as_json:
        typer.echo(f"{to} ({to.protocol}), {where.url}")
    done = []
    for step in checks.steps(to, where):
        done.append(step)
        if not as_json:
            _tell(step)
    failed = any(step.state == "failed" for step in done)
    if as_json:
        typer.echo(
            json.dumps({"ok": not failed, "steps": [step._asdict() for step in done]}, indent=2)
        )
    raise typer.Exit(1 if failed else 0)


def _tell(step: Step) -> None:
    typer.echo(safe(f"{_MARKS[step.state]}{step.name:<10} {step.told}"))
    if step.next_step:
        typer.echo(safe(f"{'':17} {step.next_step}"))
