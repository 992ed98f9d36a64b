"""Colours, as on the look-up pages, and where points and rows lead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolfault import conventions as names
from toolfault.dashboards.spec import Link
from toolfault.taxonomy import Code, Outcome

if TYPE_CHECKING:
    from toolfault.alerts.spec import Spec

GOOD, WARN, BAD, PLAIN = "#2f8f7a", "#c27400", "#c4341f", "#2f72c4"

#: Short enough for tables on a laptop.
TIME = "time:MM-DD HH:mm:ss"

#: Each is told from a white and from a dark background.
OUTCOMES = {
    Outcome.OK.value: GOOD,
    Outcome.FAILED.value: BAD,
    Outcome.TIMED_OUT.value: WARN,
    Outcome.DECLINED.value: PLAIN,
    Outcome.REFUSED.value: "#8450b8",
    Outcome.INVALID.value: "#857516",
    Outcome.NOT_FOUND.value: "#8a6048",
    Outcome.CANCELLED.value: "#75808d",
}
CODES = {
    Code.INTERNAL.value: BAD,
    Code.UNAVAILABLE.value: WARN,
    Code.PERMISSION_DENIED.value: "#8450b8",
    Code.RATE_LIMITED.value: "#857516",
    Code.INVALID_ARGUMENT.value: PLAIN,
    Code.NOT_FOUND.value: "#8a6048",
    Code.CONFLICT.value: "#75808d",
}
#: The more is the worse.
NONE_IS_GOOD = {0.0: GOOD, 1.0: BAD}

_RANGE = "since=${__from:date:iso}&until=${__to:date:iso}"


def point_to_errors(spec: Spec, *labels: str) -> Link:
    """From a point of a series to the calls behind it, by the labels the series has."""
    asked = "".join(f"{label}=${{__field.labels.{label}:percentencode}}&" for label in labels)
    return Link("Calls behind this", f"{spec.links.toolfault}/errors?{asked}{_RANGE}")


def row_to_errors(spec: Spec, *fields: str) -> Link:
    """From a row to the calls behind it, by the columns the row has."""
    asked = "".join(f"{field}=${{__data.fields.{field}:percentencode}}&" for field in fields)
    return Link("Calls behind this", f"{spec.links.toolfault}/errors?{asked}{_RANGE}")


def row_to_card(spec: Spec) -> Link:
    """From a row to the card of its reference."""
    return Link("Card", f"{spec.links.toolfault}/r/${{__data.fields.reference:percentencode}}")


def row_to_group(spec: Spec) -> Link:
    """From a row to its error group."""
    return Link("Group", f"{spec.links.toolfault}/groups/${{__data.fields.group:percentencode}}")


def row_to_tool() -> Link:
    """From a row to the dashboard of its tool, at the same time."""
    asked = "&".join(
        f"var-{label}=${{__data.fields.{label}:percentencode}}"
        for label in (names.LABEL_SERVICE, names.LABEL_ENVIRONMENT, names.LABEL_TOOL)
    )
    return Link("Tool", f"/d/{names.DASHBOARDS['tool']}?{asked}&from=${{__from}}&to=${{__to}}")


def to_on_call() -> Link:
    """To the page that says what fires, at the same time."""
    return Link("On-call", f"/d/{names.DASHBOARDS['on-call']}?from=${{__from}}&to=${{__to}}")


def row_to(title: str, field: str) -> Link:
    """From a row to an address that the row holds."""
    return Link(title, f"${{__data.fields.{field}:raw}}")
