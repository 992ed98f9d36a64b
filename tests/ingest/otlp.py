"""Requests as clients send them: the official messages, and OTLP's JSON by its own rules."""

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

TRACE, SPAN = bytes(range(1, 17)), bytes(range(1, 9))
RESOURCE = {
    "service.name": "booking",
    "deployment.environment.name": "prod",
    "service.version": "1.4.0",
}
CLIENT, SERVER, INTERNAL = 3, 2, 1


def fill(attributes, told):
    """Add attributes; a dict becomes a kvlist, a list an array."""
    for key, value in told.items():
        _set(attributes.add(key=key).value, value)


def _set(into, value):
    if isinstance(value, dict):
        into.kvlist_value.SetInParent()
        fill(into.kvlist_value.values, value)
    elif isinstance(value, list):
        into.array_value.SetInParent()
        for item in value:
            _set(into.array_value.values.add(), item)
    else:
        kinds = {bool: "bool_value", int: "int_value", float: "double_value"}
        kinds |= {str: "string_value", bytes: "bytes_value"}
        setattr(into, kinds[type(value)], value)


def span(name="execute_tool book", attributes=None, *, events=(), status=0, **fields):
    """A span's fields, for `traces`."""
    base = {"trace_id": TRACE, "span_id": SPAN, "kind": INTERNAL, "name": name}
    return base | {"attributes": attributes or {}, "events": events, "status": status} | fields


def traces(*spans, resource=RESOURCE):
    """A trace request."""
    request = ExportTraceServiceRequest()
    group = request.resource_spans.add()
    fill(group.resource.attributes, resource)
    scope = group.scope_spans.add()
    for told in spans:
        fields = dict(told)
        attributes, events = fields.pop("attributes"), fields.pop("events")
        status = fields.pop("status")
        made = scope.spans.add(**fields)
        made.status.code = status
        fill(made.attributes, attributes)
        for event_name, event_attributes in events:
            fill(made.events.add(name=event_name).attributes, event_attributes)
    return request


def log(event_name="", attributes=None, *, body=None, **fields):
    """A log record's fields, for `logs`."""
    base = {"trace_id": TRACE, "span_id": SPAN, "event_name": event_name}
    return base | {"attributes": attributes or {}, "body": body} | fields


def logs(*records, resource=RESOURCE):
    """A log request."""
    request = ExportLogsServiceRequest()
    group = request.resource_logs.add()
    fill(group.resource.attributes, resource)
    scope = group.scope_logs.add()
    for told in records:
        fields = dict(told)
        attributes, body = fields.pop("attributes"), fields.pop("body")
        made = scope.log_records.add(**fields)
        fill(made.attributes, attributes)
        if body is not None:
            _set(made.body, body)
    return request
