"""Puts reference, trace id and run id on the application's own log records."""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from typing import Any

from opentelemetry import trace

from toolfault.run import current_run
from toolfault.telemetry.current import current_call


def context_fields() -> dict[str, str]:
    """`ref`, `trace_id` and `run_id` of here; those there are."""
    fields: dict[str, str] = {}
    if (call := current_call()) is not None:
        fields["ref"] = call.reference_id
    span_context = trace.get_current_span().get_span_context()
    if span_context.is_valid:
        fields["trace_id"] = trace.format_trace_id(span_context.trace_id)
    if (run := current_run()) is not None:
        fields["run_id"] = run.run_id
    return fields


class ContextFilter(logging.Filter):
    """A filter that sets `record.ref`, `record.trace_id` and `record.run_id`, "-" where unknown.

    Put it on a handler and name the fields in its format.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Set the fields; every record passes."""
        fields = context_fields()
        for name in ("ref", "trace_id", "run_id"):
            setattr(record, name, fields.get(name, "-"))
        return True


def structlog_processor(
    logger: Any,  # noqa: ARG001 - structlog's signature
    method: str,  # noqa: ARG001
    event: MutableMapping[str, Any],
) -> MutableMapping[str, Any]:
    """A structlog processor that adds the same fields where they are known."""
    event.update(context_fields())
    return event
