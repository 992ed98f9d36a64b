"""The entry point of `opentelemetry-instrument`, which brings the package this module needs."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from opentelemetry.instrumentation.instrumentor import BaseInstrumentor

from toolfault import hooks
from toolfault.telemetry import declared


class ToolfaultInstrumentor(BaseInstrumentor):
    """Hooks the agent frameworks that are installed."""

    def instrumentation_dependencies(self) -> Collection[str]:
        """None: a framework that is not there is passed over."""
        return ()

    def _instrument(self, **kwargs: Any) -> None:
        hooks.instrument()
        declared.announce(again=True)

    def _uninstrument(self, **kwargs: Any) -> None:
        hooks.uninstrument()
