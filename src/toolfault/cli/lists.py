"""`toolfault errors` and `toolfault groups`: arguments only, no logic."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from toolfault import client, settings
from toolfault.cli import ids, tables, times

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print CSV, for a spreadsheet.")]
Url = Annotated[str | None, typer.Option(help="The service to ask.")]
Filter = Annotated[str | None, typer.Option(help="Only these.")]
TraceId = Annotated[
    str | None,
    typer.Option(
        callback=ids.trace, metavar="ID", help="Only of this trace, 32 digits of base 16."
    ),
]
Size = Annotated[int, typer.Option(min=1, max=200, help="How many at most.")]

_ERRORS = ("at", "tool", "outcome", "code", "reason", "field", "effect", "reference")
_SPARE_OF_ERRORS = ("outcome", "effect", "reason", "field")
_MORE_OF_ERRORS = (
    "received_at", "service", "environment", "action", "attempts", "duration", "agent", "version",
    "conversation_id", "trace_id", "group",
)  # fmt: skip
_GROUPS = ("last_seen", "title", "status", "calls", "calls_last_hour", "sample_reference")
_SPARE_OF_GROUPS = ("calls", "status", "calls_last_hour")
_MORE_OF_GROUPS = (
    "first_seen", "service", "environment", "tool", "code", "reason", "exception_type", "frame",
    "versions", "fingerprint",
)  # fmt: skip


def _time(what: str) -> Any:
    return typer.Option(callback=times.moment, metavar="TIME", help=f"{what}: {times.FORMS}.")


def errors(
    *,
    tool: Filter = None,
    code: Filter = None,
    outcome: Filter = None,
    reason: Filter = None,
    service: Filter = None,
    environment: Filter = None,
    conversation: Filter = None,
    trace: TraceId = None,
    since: Annotated[str | None, _time("Received since")] = None,
    until: Annotated[str | None, _time("Received before")] = None,
    size: Size = 20,
    url: Url = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """List calls that were not ok, newest first; a narrow terminal shows fewer columns.

    Example: toolfault errors --tool book_meeting --code UNAVAILABLE
    """
    _refuse_both(as_json, as_csv)
    found = client.page(
        settings.read(url=url), "errors", tool=tool, code=code, outcome=outcome, reason=reason,
        service=service, environment=environment, conversation=conversation, trace=trace,
        since=since, until=until, size=size,
    )  # fmt: skip
    if as_json or as_csv:
        _print(found, (*_ERRORS, *_MORE_OF_ERRORS), as_csv=as_csv)
    else:
        tables.show(found["items"], _ERRORS, _SPARE_OF_ERRORS, nothing=_no_call(found))


def groups(
    *,
    tool: Filter = None,
    code: Filter = None,
    service: Filter = None,
    status: Annotated[str | None, typer.Option(help="open, resolved or muted.")] = None,
    size: Size = 20,
    url: Url = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """List groups of calls that failed in the same way; a narrow terminal shows fewer columns.

    Example: toolfault groups --status open
    """
    _refuse_both(as_json, as_csv)
    found = client.page(
        settings.read(url=url), "groups", tool=tool, code=code, service=service, status=status, size=size
    )  # fmt: skip
    if as_json or as_csv:
        _print(found, (*_GROUPS, *_MORE_OF_GROUPS), as_csv=as_csv)
    else:
        tables.show(found["items"], _GROUPS, _SPARE_OF_GROUPS, nothing="No group matches.")


def _no_call(found: dict[str, Any]) -> str:
    """Why none is shown; a search for what is rare stops before it has seen all."""
    if (end := found.get("searched_to")) is None:
        return "No call matches."
    return f"No call matches since {end}. Search further back: --until {end}"


def _refuse_both(as_json: bool, as_csv: bool) -> None:
    if as_json and as_csv:
        raise typer.BadParameter("--json and --csv exclude each other.")


def _print(found: dict[str, Any], columns: tuple[str, ...], *, as_csv: bool) -> None:
    """A list as CSV, or as the API's own JSON."""
    if as_csv:
        typer.echo(tables.as_csv(found["items"], *columns), nl=False)
    else:
        typer.echo(json.dumps(found, indent=2))
