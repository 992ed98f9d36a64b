"""OTLP's wire format, seen with the few fields the service reads.

Same bytes, own view: attributes are a map of key to *undecoded* value. A span is then parsed in a
third of the time the full messages take, a value nested however deep costs nothing, and text that
is not UTF-8 can be repaired where it stands instead of spoiling its whole batch.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any, cast

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.internal import api_implementation
from google.protobuf.message import DecodeError

from toolfault.ingest.errors import MalformedError

_Field = descriptor_pb2.FieldDescriptorProto
BYTES, FIXED64, ENUM, UINT32 = (
    _Field.TYPE_BYTES,
    _Field.TYPE_FIXED64,
    _Field.TYPE_INT32,
    _Field.TYPE_UINT32,
)
MAP = _Field.TYPE_MESSAGE
_PACKAGE = "toolfault.ingest.wire"

#: message -> field -> (number, type); MAP is an attributes map, a name is a repeated message.
_MESSAGES: dict[str, dict[str, tuple[int, int | str]]] = {
    "Value": {
        "string_value": (1, BYTES),
        "bool_value": (2, _Field.TYPE_BOOL),
        "int_value": (3, _Field.TYPE_INT64),
        "double_value": (4, _Field.TYPE_DOUBLE),
        "array_value": (5, BYTES),
        "kvlist_value": (6, BYTES),
        "bytes_value": (7, BYTES),
    },
    "Resource": {"attributes": (1, MAP)},
    "Scope": {"name": (1, BYTES)},
    "Status": {"code": (3, ENUM)},
    "SpanEvent": {"time_unix_nano": (1, FIXED64), "name": (2, BYTES), "attributes": (3, MAP)},
    "Span": {
        "trace_id": (1, BYTES),
        "span_id": (2, BYTES),
        "parent_span_id": (4, BYTES),
        "name": (5, BYTES),
        "kind": (6, ENUM),
        "start_time_unix_nano": (7, FIXED64),
        "end_time_unix_nano": (8, FIXED64),
        "attributes": (9, MAP),
        "events": (11, "SpanEvent"),
        "status": (15, "Status"),
    },
    "LogRecord": {
        "time_unix_nano": (1, FIXED64),
        "severity_number": (2, ENUM),
        "body": (5, BYTES),
        "attributes": (6, MAP),
        "trace_id": (9, BYTES),
        "span_id": (10, BYTES),
        "observed_time_unix_nano": (11, FIXED64),
        "event_name": (12, BYTES),
    },
}


def _described() -> descriptor_pb2.FileDescriptorProto:
    described = descriptor_pb2.FileDescriptorProto(
        name="wire.proto", package=_PACKAGE, syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        message = described.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            _add_field(message, field, number, kind)
    return described


def _add_field(
    message: descriptor_pb2.DescriptorProto, name: str, number: int, kind: int | str
) -> None:
    field = message.field.add(name=name, number=number, label=_Field.LABEL_OPTIONAL)
    if kind == MAP:
        entry = message.nested_type.add(name="AttributesEntry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, label=_Field.LABEL_OPTIONAL, type=_Field.TYPE_STRING)
        entry.field.add(name="value", number=2, label=_Field.LABEL_OPTIONAL, type=BYTES)
        field.label, kind = _Field.LABEL_REPEATED, f"{message.name}.AttributesEntry"
    elif kind == "SpanEvent":
        field.label = _Field.LABEL_REPEATED
    if isinstance(kind, str):
        field.type, field.type_name = MAP, f".{_PACKAGE}.{kind}"
    else:
        field.type = cast("Any", kind)


_pool = descriptor_pool.DescriptorPool()
_pool.Add(_described())


def _message(name: str) -> Any:
    return message_factory.GetMessageClass(_pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


Value, Resource, Scope, Span, SpanEvent, LogRecord = map(
    _message, ("Value", "Resource", "Scope", "Span", "SpanEvent", "LogRecord")
)
Attributes = Mapping[str, bytes]


def require_upb() -> None:
    """Stop unless protobuf's C implementation is in use.

    The pure Python one is fifty times slower and had a recursion without limit (CVE-2025-4565).
    """
    if api_implementation.Type() != "upb":
        raise RuntimeError(
            "protobuf runs without its C implementation; install the protobuf wheel of this platform "
            "and unset PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"
        )


# --- splitting a request into its records ---------------------------------------------------------


def fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Number, start and end of each length-delimited field of a message; other fields are skipped.

    Splitting here and not by one parse of the whole bounds memory: 64 MiB of empty spans would be
    gigabytes of parsed messages.
    """
    while at < end:
        tag = data[at]
        at += 1
        if tag >= 0x80:
            tag, at = _varint(data, at - 1, end)
        number, wire_type = tag >> 3, tag & 7
        if not number:
            raise MalformedError("the body is not an OTLP request: field number 0")
        if wire_type == 2:
            if at + 1 < end and data[at] >= 0x80 > data[at + 1]:  # as of nearly every record
                size = data[at] - 0x80 + (data[at + 1] << 7)
                at += 2
            else:
                size, at = _varint(data, at, end)
            if size > end - at:
                raise MalformedError(
                    "the body is not an OTLP request: a field is longer than its message"
                )
            yield number, at, at + size
            at += size
        else:
            at = _skip(data, at, end, wire_type)


def _skip(data: bytes, at: int, end: int, wire_type: int) -> int:
    if wire_type == 0:
        return _varint(data, at, end)[1]
    at += {1: 8, 5: 4}.get(wire_type, end + 1)  # groups are not part of OTLP
    if at > end:
        raise MalformedError("the body is not an OTLP request: malformed field")
    return at


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    number = shift = 0
    while at < end and shift < 64:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
    raise MalformedError("the body is not an OTLP request: malformed number")


# --- reading values -------------------------------------------------------------------------------


def text(value: bytes | None) -> str:
    """An undecoded value as text; empty if it is not a string. Bad UTF-8 becomes U+FFFD."""
    if not value:
        return ""
    if value[0] == 0x0A and len(value) > 1 and value[1] == len(value) - 2 and value[1] < 0x80:
        return value[2:].decode("utf-8", "replace")  # the form every client writes, if it is short
    return str(parsed(value).string_value.decode("utf-8", "replace"))


def value(told: str | bytes) -> bytes:
    """A text as an undecoded value. Lone surrogates become U+003F."""
    encoded = told.encode("utf-8", "replace") if isinstance(told, str) else told
    return bytes(Value(string_value=encoded).SerializeToString()) if encoded else b"\x0a\x00"


def parsed(value: bytes) -> Any:
    """The value's `Value` message; an empty one if it is malformed."""
    try:
        return Value.FromString(value)
    except DecodeError:
        return Value()


_double = struct.Struct("<d").unpack_from


def number(value: bytes | None) -> float | None:
    """A double or an integer as a number, whichever the client wrote; None for anything else."""
    if not value:
        return None
    if value[0] == 0x21 and len(value) == 9:
        told: float = _double(value, 1)[0]
        return told
    return int(parsed(value).int_value) if value[0] == 0x18 else None


def integer(value: bytes | None) -> int | None:
    """An integer; a double without a fraction will do. None for anything else."""
    if not value:
        return None
    if value[0] == 0x18:
        if len(value) == 2 and value[1] < 0x80:
            return value[1]
        try:
            whole: int = Value.FromString(value).int_value
        except DecodeError:
            return None
        return whole
    told = number(value)
    return int(told) if told is not None and told == told // 1 and abs(told) < 2**63 else None


TRUE = b"\x10\x01"


def flag(value: bytes | None) -> bool:
    """A boolean; False for anything else."""
    return value == TRUE
