"""Run events and stamped log records. The only module that uses OpenTelemetry's log API."""

from __future__ import annotations

import logging
import secrets
import time
from typing import NamedTuple

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry._logs import (
    Logger,
    LoggerProvider,
    LogRecord,
    SeverityNumber,
    get_logger_provider,
)
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from toolfault import safe_log
from toolfault.taxonomy import Code, Outcome
from toolfault.telemetry.record import Attributes, ToolCall, clean, cleaned

SCOPE = "toolfault"
ERROR, WARN, INFO = SeverityNumber.ERROR, SeverityNumber.WARN, SeverityNumber.INFO

_log = logging.getLogger(__name__)


# By name: the proxies are not public, and an abstract class is slow to ask.
_SILENT_PROVIDERS = frozenset(
    {"ProxyTracerProvider", "NoOpTracerProvider", "ProxyLoggerProvider", "NoOpLoggerProvider"}
)


class _Logger:
    """The logger of the provider in use now.

    Not OpenTelemetry's proxy: tests and `configure()` may set a provider after the first event.
    """

    provider: LoggerProvider | None = None  # set by tests; else the global one
    warned = False

    def __init__(self) -> None:
        self._made: tuple[LoggerProvider, Logger] | None = None

    def get(self) -> Logger | None:
        provider = self.provider or get_logger_provider()
        if type(provider).__name__ in _SILENT_PROVIDERS:
            return None
        if self._made is None or self._made[0] is not provider:
            self._made = provider, provider.get_logger(SCOPE)
        return self._made[1]


_logger = _Logger()


class Unheard:
    """That nobody listens is believed for 10 ms: asking OpenTelemetry costs more than a call."""

    until = 0  # ns of `time.perf_counter_ns`


def use_provider(provider: LoggerProvider | None) -> None:
    """Send events to `provider` instead of the global one; None undoes it."""
    _logger.provider = provider
    Unheard.until = 0


def is_on() -> bool:
    """Whether events go anywhere."""
    return _logger.get() is not None


class Place(NamedTuple):
    """Where an event belongs: the span context it is emitted with."""

    context: otel_context.Context

    @classmethod
    def of(cls, span_context: SpanContext) -> Place:
        """The place of a span."""
        return cls(trace.set_span_in_context(NonRecordingSpan(span_context)))

    @classmethod
    def minted(cls) -> Place:
        """A span id of our own in the current trace, or in a new one where there is none.

        For calls whose span cannot be reached: the event is then all there is of the call.
        """
        parent = trace.get_current_span().get_span_context()
        return cls.of(
            SpanContext(
                parent.trace_id if parent.is_valid else secrets.randbits(128) | 1,
                secrets.randbits(64) | 1,
                is_remote=False,
                trace_flags=parent.trace_flags
                if parent.is_valid
                else TraceFlags(TraceFlags.SAMPLED),
            )
        )


def emit(
    name: str,
    attributes: Attributes,
    *,
    place: Place | None = None,
    severity: SeverityNumber = INFO,
    body: str | None = None,
    at: int | None = None,
) -> None:
    """Emit one event; without an SDK that takes logs it is dropped, and that is said once.

    Args:
        name: event name from `conventions`.
        attributes: the event's attributes.
        place: span context; by default the current one.
        severity: INTERNAL errors are errors, other failures warnings.
        body: text of a log record; run events have none.
        at: unix ns; by default now.
    """
    logger = _logger.get()
    if logger is None:
        _warn_once()
        return
    logger.emit(
        LogRecord(
            timestamp=time.time_ns() if at is None else at,
            context=place.context if place else None,
            severity_number=severity,
            body=None if body is None else clean(body),
            attributes=cleaned(attributes),
            event_name=name,
        )
    )


def _warn_once() -> None:
    # Spans without events look like success, so a missing LoggerProvider must not stay silent.
    traced = type(trace.get_tracer_provider()).__name__ not in _SILENT_PROVIDERS
    if traced and not _logger.warned:
        _logger.warned = True
        safe_log.log(
            _log,
            logging.WARNING,
            "OpenTelemetry has a TracerProvider but no LoggerProvider, so toolfault's events are "
            "dropped; call toolfault.configure(), which adds one",
        )


def severity_of(call: ToolCall) -> SeverityNumber:
    """INTERNAL 17, other failures 13, declined and the rest 9."""
    if call.outcome in _CALM:
        return INFO
    return ERROR if call.code is Code.INTERNAL else WARN


_CALM = frozenset({Outcome.OK, Outcome.CANCELLED, Outcome.DECLINED})


def severity_of_level(level: int) -> SeverityNumber:
    """The severity of a level of the standard library's logging."""
    steps = ((50, "FATAL"), (40, "ERROR"), (30, "WARN"), (20, "INFO"))
    return SeverityNumber[next((name for at_least, name in steps if level >= at_least), "DEBUG")]
