"""Marks every span of a process that has the library. Needs the SDK; imported by `setup`."""

from __future__ import annotations

from opentelemetry.context import Context
from opentelemetry.sdk.trace import Span, SpanProcessor

from toolfault.conventions import SDK_MARK


class MarkingProcessor(SpanProcessor):
    """Sets `toolfault.sdk`: a marked tool span without a record is not counted, its event is."""

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:  # noqa: ARG002
        """Mark the span."""
        span.set_attribute(SDK_MARK, True)
