"""OTLP's JSON encoding, which is not protobuf's JSON mapping.

Ids are hex in any case, enums integers, keys lowerCamelCase and nothing else, unknown keys ignored,
64-bit integers numbers or strings, bytes base64, NaN and infinities strings.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from toolfault.ingest import wire
from toolfault.ingest.errors import MalformedError

#: Objects and arrays of one body: each costs some 200 bytes once parsed.
MAX_CONTAINERS = 2_500_000
#: Values nested deeper are dropped; protobuf's C decoder stops at about the same depth.
MAX_DEPTH = 30

Json = dict[str, Any]


class Signal(NamedTuple):
    """How the levels of a request are called."""

    resources: str
    scopes: str
    records: str
    convert: Callable[[Json], Any]


def groups(body: bytes, signal: Signal) -> Iterator[tuple[bytes, bytes, Iterator[Any]]]:
    """Resource, scope and records of each scope, as their wire messages."""
    request = _loaded(body)
    for resource_item in _objects(request, signal.resources):
        resource = wire.Resource()
        _attributes(resource.attributes, _object(resource_item, "resource"))
        raw = resource.SerializeToString(deterministic=True)
        for scope_item in _objects(resource_item, signal.scopes):
            scope = wire.Scope(name=_text(_object(scope_item, "scope"), "name"))
            yield (
                raw,
                scope.SerializeToString(),
                map(signal.convert, _objects(scope_item, signal.records)),
            )


def count_metrics(body: bytes) -> int:
    """How many metrics a request holds."""
    resources = _objects(_loaded(body), "resourceMetrics")
    scopes = (scope for resource in resources for scope in _objects(resource, "scopeMetrics"))
    return sum(len(_objects(scope, "metrics")) for scope in scopes)


def _loaded(body: bytes) -> Json:
    if body.count(b"{") + body.count(b"[") > MAX_CONTAINERS:
        raise MalformedError(f"the JSON body holds more than {MAX_CONTAINERS:,} objects and arrays")
    try:
        request = json.loads(body.decode("utf-8"))
    except RecursionError:
        raise MalformedError("the JSON body is nested too deep") from None
    except ValueError:  # also bad UTF-8 and integers of thousands of digits
        raise MalformedError("the body is not JSON in UTF-8") from None
    if not isinstance(request, dict):
        raise MalformedError("the JSON body is not an object")
    return request


# --- records --------------------------------------------------------------------------------------


def _span(item: Json) -> Any:
    span = wire.Span(
        trace_id=_hex(item, "traceId"),
        span_id=_hex(item, "spanId"),
        parent_span_id=_hex(item, "parentSpanId"),
        name=_text(item, "name"),
        kind=_integer(item, "kind", _INT32),
        start_time_unix_nano=_integer(item, "startTimeUnixNano", _UINT64),
        end_time_unix_nano=_integer(item, "endTimeUnixNano", _UINT64),
    )
    span.status.code = _integer(_object(item, "status"), "code", _INT32)
    _attributes(span.attributes, item)
    for event_item in _objects(item, "events"):
        event = span.events.add(
            time_unix_nano=_integer(event_item, "timeUnixNano", _UINT64),
            name=_text(event_item, "name"),
        )
        _attributes(event.attributes, event_item)
    return span


def _log_record(item: Json) -> Any:
    record = wire.LogRecord(
        time_unix_nano=_integer(item, "timeUnixNano", _UINT64),
        observed_time_unix_nano=_integer(item, "observedTimeUnixNano", _UINT64),
        severity_number=_integer(item, "severityNumber", _INT32),
        trace_id=_hex(item, "traceId"),
        span_id=_hex(item, "spanId"),
        event_name=_text(item, "eventName"),
    )
    if item.get("body") is not None:
        record.body = _value(_object(item, "body"))
    _attributes(record.attributes, item)
    return record


TRACES = Signal("resourceSpans", "scopeSpans", "spans", _span)
LOGS = Signal("resourceLogs", "scopeLogs", "logRecords", _log_record)


# --- fields ---------------------------------------------------------------------------------------

_DECIMAL = re.compile(r"-?[0-9]{1,20}")
_HEXADECIMAL = re.compile(r"[0-9A-Fa-f]*")
_INT32 = range(-(2**31), 2**31)
_INT64 = range(-(2**63), 2**63)
_UINT64 = range(2**64)


def _object(item: Json, key: str) -> Json:
    value = item.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise MalformedError(f"{key} is not an object")
    return value


def _objects(item: Json, key: str) -> list[Json]:
    value = item.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise MalformedError(f"{key} is not an array of objects")
    return value


def _text(item: Json, key: str) -> bytes:
    value = item.get(key)
    if value is None:
        return b""
    if not isinstance(value, str):
        raise MalformedError(f"{key} is not a string")
    return _utf8(value)


def _utf8(value: str) -> bytes:
    """UTF-8, lone surrogates as U+FFFD."""
    if value.isascii():
        return value.encode()
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _hex(item: Json, key: str) -> bytes:
    value = item.get(key)
    if value is None:
        return b""
    if not isinstance(value, str) or len(value) % 2 or not _HEXADECIMAL.fullmatch(value):
        raise MalformedError(f"{key} is not a hexadecimal string")
    return bytes.fromhex(value)


def _integer(item: Json, key: str, allowed: range) -> int:
    value = item.get(key)
    if value is None:
        return 0
    if (isinstance(value, str) and _DECIMAL.fullmatch(value)) or (
        isinstance(value, float) and value.is_integer()
    ):
        value = int(value)
    if type(value) is not int or value not in allowed:
        raise MalformedError(f"{key} is not an integer of its range")
    return value


def _double(item: Json, key: str) -> float:
    value = item[key]
    try:
        # A string may also be a number, as in protobuf's own mapping.
        told = None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        told = None
    if told is None:
        raise MalformedError(f"{key} is not a number")
    return told


# --- attributes and values ------------------------------------------------------------------------


def _attributes(into: Any, item: Json) -> None:
    for entry in _objects(item, "attributes"):
        into[_text(entry, "key").decode()] = _value(_object(entry, "value"))


def _value(item: Json) -> bytes:
    if len(item) == 1 and isinstance(text := item.get("stringValue"), str):  # nearly all
        return wire.value(_utf8(text))
    value = AnyValue()
    _fill(value, item, MAX_DEPTH)
    return value.SerializeToString()


def _fill(value: AnyValue, item: Json, depth: int) -> None:
    for key, entry in item.items():
        if key in _FILLERS and entry is not None:
            _FILLERS[key](value, item, depth)
            return


def _fill_string(value: AnyValue, item: Json, _: int) -> None:
    value.string_value = _text(item, "stringValue").decode()


def _fill_bool(value: AnyValue, item: Json, _: int) -> None:
    if not isinstance(item["boolValue"], bool):
        raise MalformedError("boolValue is not true or false")
    value.bool_value = item["boolValue"]


def _fill_int(value: AnyValue, item: Json, _: int) -> None:
    value.int_value = _integer(item, "intValue", _INT64)


def _fill_double(value: AnyValue, item: Json, _: int) -> None:
    value.double_value = _double(item, "doubleValue")


def _fill_bytes(value: AnyValue, item: Json, _: int) -> None:
    try:
        value.bytes_value = base64.b64decode(item["bytesValue"], validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise MalformedError("bytesValue is not base64") from None


def _fill_array(value: AnyValue, item: Json, depth: int) -> None:
    value.array_value.SetInParent()
    for entry in _objects(_object(item, "arrayValue"), "values"):
        child = value.array_value.values.add()
        if depth:
            _fill(child, entry, depth - 1)


def _fill_kvlist(value: AnyValue, item: Json, depth: int) -> None:
    value.kvlist_value.SetInParent()
    for entry in _objects(_object(item, "kvlistValue"), "values"):
        child = value.kvlist_value.values.add(key=_text(entry, "key").decode())
        if depth:
            _fill(child.value, _object(entry, "value"), depth - 1)


_FILLERS: dict[str, Callable[[AnyValue, Json, int], None]] = {
    "stringValue": _fill_string,
    "boolValue": _fill_bool,
    "intValue": _fill_int,
    "doubleValue": _fill_double,
    "bytesValue": _fill_bytes,
    "arrayValue": _fill_array,
    "kvlistValue": _fill_kvlist,
}
