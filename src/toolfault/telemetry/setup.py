"""`configure()`: an OpenTelemetry SDK from the standard `OTEL_*` variables."""

from __future__ import annotations

import atexit
import os
from typing import TYPE_CHECKING, Any

from opentelemetry import _logs as otel_logs
from opentelemetry import trace

from toolfault.telemetry import black_box, declared, events

if TYPE_CHECKING:
    from opentelemetry.sdk._logs.export import LogRecordExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

    from toolfault.telemetry.delivery import Ender

_MISSING = (
    "toolfault.configure() needs the OpenTelemetry SDK and its OTLP exporters: "
    'pip install "toolfault[sdk]"'
)
_PROTOCOLS = ("grpc", "http/protobuf")


class _Configured:
    done = False
    ender: Ender | None = None


def configure(service_name: str | None = None) -> None:
    """Send spans and events over OTLP, as the standard `OTEL_*` variables say.

    What the process has configured already is kept: to a TracerProvider of its own the span
    processor is added, and only a missing provider is made. Calling it again does nothing.

    Args:
        service_name: `service.name` where neither OTEL_SERVICE_NAME nor OTEL_RESOURCE_ATTRIBUTES
            names one.

    Raises:
        ImportError: the SDK is not installed; the message has the pip line.
        ValueError: an OTEL variable asks for something that is not known.
    """
    if service_name is not None and (not isinstance(service_name, str) or not service_name):
        raise ValueError(f'service_name is {service_name!r}; write configure("my-agent")')
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return
    try:
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ImportError(_MISSING) from error
    resource = Resource.create(_named(service_name))
    _set_up_spans(resource)
    _set_up_events(resource)
    events.Unheard.until = 0
    if not _Configured.done:
        _Configured.done = True
        black_box.install()
        declared.announce(again=True)


def _named(service_name: str | None) -> dict[str, Any]:
    named = "OTEL_SERVICE_NAME" in os.environ or "service.name=" in os.environ.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    return {} if service_name is None or named else {"service.name": service_name}


def _set_up_spans(resource: Resource) -> None:
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415

    from toolfault.telemetry.delivery import SpanDelivery  # noqa: PLC0415

    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        if (exporter := _exporter("TRACES")) is not None:
            provider.add_span_processor(SpanDelivery(exporter))
        trace.set_tracer_provider(provider)
        _ender().add(provider.shutdown)
    mark_spans(provider)


def mark_spans(provider: TracerProvider) -> None:
    """Mark every span of the provider, so that the service knows the library is in the process."""
    from toolfault.telemetry.processor import MarkingProcessor  # noqa: PLC0415

    if not getattr(provider, "_toolfault_marks", False):
        provider._toolfault_marks = True  # type: ignore[attr-defined]  # noqa: SLF001
        provider.add_span_processor(MarkingProcessor())


def _set_up_events(resource: Resource) -> None:
    from opentelemetry.sdk._logs import LoggerProvider  # noqa: PLC0415

    from toolfault.telemetry.delivery import LogDelivery  # noqa: PLC0415

    if isinstance(otel_logs.get_logger_provider(), LoggerProvider):
        return
    provider = LoggerProvider(resource=resource, shutdown_on_exit=False)
    if (exporter := _exporter("LOGS")) is not None:
        provider.add_log_record_processor(LogDelivery(exporter))
    otel_logs.set_logger_provider(provider)
    _ender().add(provider.shutdown, first=provider.force_flush)


def _ender() -> Ender:
    """What ends the providers with the process."""
    from toolfault.telemetry.delivery import Ender  # noqa: PLC0415

    if _Configured.ender is None:
        _Configured.ender = Ender()
        atexit.register(_Configured.ender.end)
    return _Configured.ender


def _exporter(signal: str) -> Any:
    """The exporter for TRACES or LOGS, or None for `none`."""
    kind = os.environ.get(f"OTEL_{signal}_EXPORTER", "otlp").strip().lower()
    if kind == "none":
        return None
    if kind == "console":
        return _console(signal)
    if kind != "otlp":
        raise ValueError(f"OTEL_{signal}_EXPORTER is {kind!r}; write otlp, console or none")
    protocol = os.environ.get(
        f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL",
        os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
    )
    if protocol not in _PROTOCOLS:
        raise ValueError(
            f"OTEL_EXPORTER_OTLP_PROTOCOL is {protocol!r}; write one of {', '.join(_PROTOCOLS)}"
        )
    try:
        return _otlp(signal, protocol)
    except ImportError as error:
        raise ImportError(_MISSING) from error


def _console(signal: str) -> SpanExporter | LogRecordExporter:
    from opentelemetry.sdk._logs.export import ConsoleLogRecordExporter  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import ConsoleSpanExporter  # noqa: PLC0415

    return ConsoleSpanExporter() if signal == "TRACES" else ConsoleLogRecordExporter()


def _otlp(signal: str, protocol: str) -> SpanExporter | LogRecordExporter:
    if protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc._log_exporter import (  # noqa: PLC0415
            OTLPLogExporter as GrpcLogs,
        )
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import (  # noqa: PLC0415
            OTLPSpanExporter as GrpcSpans,
        )

        return GrpcSpans() if signal == "TRACES" else GrpcLogs()
    from opentelemetry.exporter.otlp.proto.http._log_exporter import (  # noqa: PLC0415
        OTLPLogExporter as HttpLogs,
    )
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415
        OTLPSpanExporter as HttpSpans,
    )

    return HttpSpans() if signal == "TRACES" else HttpLogs()


def shutdown() -> None:
    """Flush and end what `configure()` has set up, in 4 seconds at most.

    A process that just exits does it as well; nothing is reported afterwards.
    """
    if _Configured.ender is not None:
        _Configured.ender.end()
