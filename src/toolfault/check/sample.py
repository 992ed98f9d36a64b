"""One tool call that disturbs nobody: declined, by a tool and a service of its own.

A declined call is an answer and no fault: it has a reference, and no alert counts it.
"""

from __future__ import annotations

import secrets
import time

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from toolfault import conventions as c
from toolfault.taxonomy import Code, Effect, Outcome

SERVICE = "toolfault-check"
TOOL = "toolfault_check"


def request(reference: str) -> ExportTraceServiceRequest:
    """An export of one span that carries the reference."""
    now = time.time_ns()
    span = Span(
        trace_id=secrets.token_bytes(16),
        span_id=secrets.token_bytes(8),
        name=f"{c.EXECUTE_TOOL} {TOOL}",
        kind=Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=now,
        end_time_unix_nano=now,
        attributes=[
            _text(c.OPERATION_NAME, c.EXECUTE_TOOL),
            _text(c.TOOL_NAME, TOOL),
            _text(c.OUTCOME, Outcome.DECLINED),
            _text(c.CODE, Code.CONFLICT),
            _text(c.REASON, "check"),
            _text(c.EFFECT, Effect.NONE),
            _text(c.REFERENCE_ID, reference),
            KeyValue(key=c.ATTEMPTS, value=AnyValue(int_value=1)),
            KeyValue(key=c.START, value=AnyValue(int_value=now)),
        ],
    )
    resource = Resource(attributes=[_text(c.SERVICE_NAME, SERVICE)])
    scope = ScopeSpans(spans=[span])
    return ExportTraceServiceRequest(
        resource_spans=[ResourceSpans(resource=resource, scope_spans=[scope])]
    )


def _text(key: str, value: str) -> KeyValue:
    return KeyValue(key=key, value=AnyValue(string_value=value))
