"""Run events that belong to no tool call: model steps, limits, dead letters."""

from __future__ import annotations

from opentelemetry._logs import SeverityNumber

from toolfault import conventions as c
from toolfault.run import Run
from toolfault.telemetry import events, report
from toolfault.telemetry.record import Attributes


def send(
    name: str,
    attributes: Attributes,
    run: Run | None,
    severity: SeverityNumber = events.INFO,
) -> None:
    """Emit one event in the current span, with the run it belongs to; never raises."""
    try:
        if events.is_on():
            events.emit(name, attributes | _identity(run), severity=severity)
    except Exception:  # noqa: BLE001 - telemetry guard
        report.note_fault()


def _identity(run: Run | None) -> Attributes:
    if run is None:
        return {}
    told = {
        c.RUN_ID: run.run_id,
        c.CONVERSATION_ID: run.conversation_id,
        c.AGENT_NAME: run.agent,
    }
    return {key: value for key, value in told.items() if value is not None}
