"""`toolfault import`: arguments only, no logic."""
# ruff: noqa: PLC0415 - the server's parts, as in app.py

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

from toolfault import settings
from toolfault.cli.card import safe

if TYPE_CHECKING:
    from toolfault.ingest.importing import Imported
    from toolfault.ingest.line_file import LineFile
    from toolfault.settings import Settings

_COUNTS = ("lines", "calls", "events", "logs", "known", "ignored")


def import_(
    files: Annotated[list[Path], typer.Argument(help="OTLP JSON lines, .gz too.")],
    *,
    again: Annotated[
        bool, typer.Option("--again", help="From the beginning, not where it stopped.")
    ] = False,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder of the embedded PostgreSQL.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Store what the Collector's file exporter wrote. Harmless to repeat; moves no alert.

    Exit code 1 where lines were skipped.

    Example: toolfault import traces.json logs.json.gz
    """
    done = _imported(settings.read(data_dir=data_dir), files, again)
    counts = dict.fromkeys(_COUNTS, 0)
    for one in done:
        told = (one.lines, *one.new, one.known, one.ignored)
        counts = {name: counts[name] + more for name, more in zip(_COUNTS, told, strict=True)}
    bad = [line._asdict() for one in done for line in one.bad]
    if as_json:
        typer.echo(json.dumps({**counts, "bad": bad}, indent=2))
    else:
        _tell(counts, bad)
    raise typer.Exit(1 if bad else 0)


def _imported(chosen: Settings, paths: list[Path], again: bool) -> list[Imported]:
    from toolfault.cli.database import url_of
    from toolfault.ingest.importing import Notes, import_files
    from toolfault.ingest.line_file import LineFile

    with ExitStack() as stack:
        files = [
            stack.enter_context(LineFile(path, chosen.max_request_bytes)) for path in paths
        ]  # a file that is not there is told before any is begun
        url = stack.enter_context(url_of(chosen))
        notes = Notes(chosen.data_dir / "imports", url)
        bar = stack.enter_context(_bar())
        tasks = {
            file.path: bar.add_task(safe(file.path.name), total=file.path.stat().st_size)
            for file in files
        }

        def advanced(file: LineFile) -> None:
            bar.update(tasks[file.path], completed=file.bytes_read)

        return asyncio.run(import_files(files, url, notes, again=again, advanced=advanced))


def _bar() -> Progress:
    """On standard error, and only where somebody watches it."""
    return Progress(
        "{task.description}", BarColumn(), DownloadColumn(), TimeRemainingColumn(),
        console=Console(stderr=True), disable=not sys.stderr.isatty(),
    )  # fmt: skip


def _tell(counts: dict[str, int], bad: list[dict[str, Any]]) -> None:
    for line in bad:
        typer.echo(safe(f"{line['file']}:{line['line']}: {line['problem']}"), err=True)
    typer.echo(
        "{lines} lines: {calls} calls, {events} events and {logs} log records are new, {known} were "
        "there already, {ignored} are not about tools.".format(**counts)
    )
