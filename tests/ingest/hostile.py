"""Requests nobody should send, and the status each deserves.

Built here, case by case: values no database takes, shapes no decoder likes, headers that lie.
A body is bytes; `status` is HTTP's, 200 with `rejected` records refused.
"""

import gzip
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from tests.ingest import otlp

PROTOBUF, JSON = "application/x-protobuf", "application/json"
NOW = 1_800_000_000_000_000_000


class Case(NamedTuple):
    name: str
    body: bytes
    status: int = 200
    rejected: int = 0
    signal: str = "traces"
    content_type: str | None = PROTOBUF
    headers: Mapping[str, str] = MappingProxyType({})
    method: str = "POST"
    path: str = ""

    @property
    def over_grpc(self):
        """Whether the same bytes can be sent over gRPC."""
        plain = self.method == "POST" and not self.path and not self.headers
        return plain and self.content_type == PROTOBUF


# --- values, in every place a value can be -------------------------------------------------------


def _deep(levels, kind):
    value = "x"
    for _ in range(levels):
        value = {"k": value} if kind == "kvlist" else [value]
    return value


VALUES = {
    "a NUL": "a\0b",
    "only NULs": "\0" * 50,
    "control characters": "".join(map(chr, range(32))),
    "an escape sequence": "\x1b]0;owned\x07\x1b[31m",
    "bidi overrides": "\u202eevil\u202c\u2066x\u2069",
    "noncharacters": "\uffff\ufffe\ufdd0",
    "astral characters": "😀" * 300,
    "a combining pile": "e" + "\u0301" * 5000,
    "an empty text": "",
    "a long text": "x" * 60_000,
    "SQL": "'; DROP TABLE tool_call; --",
    "COPY's own end": "\\.\n\\N\t\\x00",
    "HTML": "<script>alert(1)</script>",
    "a format string": "%s%n{0.__class__}",
    "a line for Prometheus": 'x"} 1\n# HELP evil',
    "a large integer": 2**63 - 1,
    "a small integer": -(2**63),
    "not a number": float("nan"),
    "infinity": float("inf"),
    "minus infinity": float("-inf"),
    "the largest double": 1.7976931348623157e308,
    "a boolean": True,
    "bytes": b"\x00\xff\xfe",
    "an array": ["a", 1, 2.5, True, b"x", ["y"], {"z": 1}],
    "an empty array": [],
    "an object": {"a": "b", "c": {"d": 1}},
    "an empty object": {},
    "30 objects deep": _deep(30, "kvlist"),
    "45 arrays deep": _deep(45, "array"),
    "20,000 numbers": [1] * 20_000,
}
#: Keys that end in columns or are kept: each hostile value goes into all of them at once.
KEYS = (
    "gen_ai.tool.name", "gen_ai.tool.call.id", "gen_ai.agent.name", "gen_ai.conversation.id",
    "toolfault.start", "toolfault.duration", "toolfault.code", "toolfault.reason",
    "toolfault.attempts", "toolfault.reference_id", "toolfault.action", "toolfault.transient",
    "toolfault.retryable", "toolfault.retry_after", "toolfault.field", "toolfault.effect",
    "toolfault.evidence", "toolfault.possibly_twice", "toolfault.run_id", "toolfault.message",
    "toolfault.budget.failures", "toolfault.budget.limit", "toolfault.exception_type",
    "toolfault.frame", "toolfault.user_message", "toolfault.attempt_list", "toolfault.reasons",
    "toolfault.owner_contact", "toolfault.runbook", "toolfault.count", "toolfault.result",
    "exception.type", "exception.message", "exception.stacktrace", "error.type",
)  # fmt: skip


def _values():
    for name, value in VALUES.items():
        told = dict.fromkeys(KEYS, value)
        small = name not in {"a long text", "20,000 numbers"}
        resource = dict.fromkeys(otlp.RESOURCE, value) if small else otlp.RESOURCE
        title = value if isinstance(value, str) else name
        for outcome in ("ok", "failed"):
            span = otlp.span(
                title,
                told | {"toolfault.outcome": outcome, "gen_ai.operation.name": "execute_tool"},
                events=[("toolfault.attempt", dict.fromkeys(("number", "start", "code", "waited"), value))],
                start_time_unix_nano=NOW,
            )  # fmt: skip
            yield Case(
                f"{name} everywhere on an {outcome} span",
                *_both(otlp.traces(span, resource=resource)),
            )
        foreign = otlp.span(title, told | {"gen_ai.operation.name": "execute_tool"}, status=2)
        yield Case(
            f"{name} everywhere on a foreign span", *_both(otlp.traces(foreign, resource=resource))
        )
        for event in ("toolfault.tool_error", "toolfault.tool_declared", "toolfault.exception"):
            log = otlp.log(event, told, body=value, time_unix_nano=NOW)
            request = otlp.logs(log, resource=resource)
            yield Case(f"{name} everywhere on {event}", *_both(request), signal="logs")


def _both(request):
    return (request.SerializeToString(),)


# --- ids and times -------------------------------------------------------------------------------


def _ids_and_times():
    good = {"trace_id": otlp.TRACE, "span_id": otlp.SPAN}
    bad = {
        "no trace id": {"trace_id": b""},
        "a zero trace id": {"trace_id": bytes(16)},
        "a trace id of 15 bytes": {"trace_id": b"x" * 15},
        "a trace id of 17 bytes": {"trace_id": b"x" * 17},
        "a trace id of 100 kB": {"trace_id": b"x" * 100_000},
        "no span id": {"span_id": b""},
        "a zero span id": {"span_id": bytes(8)},
        "a span id of 16 bytes": {"span_id": b"y" * 16},
    }
    record = {"toolfault.outcome": "ok", "gen_ai.tool.name": "book"}
    for name, ids in bad.items():
        span = otlp.span(attributes=record, **good | ids)
        fine = otlp.span(attributes=record, **good | {"span_id": b"12345678"})
        yield Case(name, *_both(otlp.traces(span, fine)), rejected=1)
        yield Case(f"{name} on an ignored span", *_both(otlp.traces(otlp.span("GET /", **good | ids))), rejected=1)  # fmt: skip
        log = otlp.log("toolfault.tool_error", record, **good | ids)
        yield Case(f"{name} on a log record", *_both(otlp.logs(log)), signal="logs")
    for name, (start, end) in {
        "no times": (0, 0),
        "an end before the start": (NOW, NOW - 10**9),
        "the last time": (2**64 - 1, 2**64 - 1),
        "a duration of 584 years": (1, 2**64 - 1),
        "a time of next year": (NOW + 365 * 86_400 * 10**9, NOW),
        "a time of 1971": (10**16, 10**16),
    }.items():
        times = {"start_time_unix_nano": start, "end_time_unix_nano": end}
        for told in (record, {"gen_ai.operation.name": "execute_tool"}):
            span = otlp.span(attributes=told, **times)
            yield Case(f"{name}, {len(told)} attributes", *_both(otlp.traces(span)))
        log = otlp.log("toolfault.log", {}, time_unix_nano=start, observed_time_unix_nano=end)
        yield Case(f"{name} of a log record", *_both(otlp.logs(log)), signal="logs")
    for name, number in {
        "negative": -1,
        "zero": 0,
        "the least": -(2**63),
        "the last": 2**63 - 1,
    }.items():
        told = dict.fromkeys(
            ("toolfault.start", "toolfault.attempts", "toolfault.duration"), number
        )
        yield Case(f"a {name} start", *_both(otlp.traces(otlp.span(attributes=record | told))))
    for name in ("code", "outcome", "effect", "action"):
        for outcome in ("failed", "declined", "cancelled", "timed_out", "ok"):
            told = (
                record | {"toolfault.outcome": outcome} | {f"toolfault.{name}": "FROM_THE_FUTURE"}
            )
            yield Case(
                f"an unknown {name} of {outcome}", *_both(otlp.traces(otlp.span(attributes=told)))
            )
    many = {f"key{i}": "value" for i in range(10_000)}
    yield Case("10,000 attributes", *_both(otlp.traces(otlp.span(attributes=record | many))))
    events = [("toolfault.attempt", {"number": i}) for i in range(10_000)]
    yield Case("10,000 attempts", *_both(otlp.traces(otlp.span(attributes=record | {"toolfault.outcome": "failed"}, events=events))))  # fmt: skip
    listed = json.dumps([{"number": i} for i in range(3000)])
    told = record | {"toolfault.outcome": "failed", "toolfault.attempt_list": listed}
    yield Case(
        "3,000 listed attempts",
        *_both(otlp.logs(otlp.log("toolfault.tool_error", told))),
        signal="logs",
    )


# --- protobuf that is none ------------------------------------------------------------------------


def _wire():
    good = otlp.traces(otlp.span(attributes={"toolfault.outcome": "ok"})).SerializeToString()
    yield Case("an empty body", b"")
    yield Case("an empty resource", b"\x0a\x00")
    yield Case("a million empty envelopes", b"\x0a\x00" * 90_000)
    yield Case("too many empty envelopes", b"\x0a\x00" * 110_000, 400)
    yield Case("empty spans", b"\x0a\x08\x12\x06" + b"\x12\x00" * 3, rejected=3)
    yield Case("text", b"hello, world", 400)
    yield Case("JSON as protobuf", b'{"resourceSpans": []}', 400)
    yield Case("HTML", b"<html>", 400)
    yield Case("NULs", bytes(1000), 400)
    yield Case("ones", b"\xff" * 1000, 400)
    yield Case("gzip without saying so", gzip.compress(good), 400, headers={"x": "http only"})
    yield Case("cut in the middle", good[: len(good) // 2], 400)
    yield Case("cut at the end", good[:-1], 400)
    yield Case("with a byte more", good + b"\x00", 400)
    yield Case("twice", good + good)
    yield Case("an unknown field", good + b"\xa2\x06\x03abc")
    yield Case("an unknown number", good + b"\xa0\x06\x01")
    yield Case("an unknown group", good + b"\xa3\x06\xa4\x06", 400)
    yield Case("a wrong wire type", b"\x08\x01")
    yield Case("an endless number", b"\x0a" + b"\x80" * 20, 400)
    yield Case("a length of 2^63", b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 400)
    yield Case("a length over the end", b"\x0a\x7f\x00", 400)
    yield Case("field number 0", b"\x02\x00", 400)
    yield Case("a fixed number cut off", b"\x09\x00\x00", 400)
    attribute = b"\x4a\x0e\x0a\x01\xff\x12\x09\x0a\x07\xff\xfe\xfd\xfc\xfb\xfa\xf9"
    yield Case("a key that is not UTF-8", _wrapped(_ids() + attribute), 400)
    attribute = b"\x4a\x0e\x0a\x01k\x12\x09\x0a\x07\xff\xfe\xfd\xfc\xfb\xfa\xf9"
    yield Case("a value that is not UTF-8", _wrapped(_ids() + attribute))
    yield Case(
        "a name that is not UTF-8", _wrapped(_ids() + b"\x2a\x0f" + b"execute_tool \xff\xfe")
    )
    yield Case("a truncated span", _wrapped(_ids() + b"\x2a\x7f"), 400)
    yield Case("the resource after its spans", _wrapped(_ids(), resource_last=True))
    for levels in (33, 64, 100, 1000, 5000):
        yield Case(f"{levels} objects deep", _wrapped(_ids() + _field(9, _field(1, b"toolfault.message") + _field(2, _wire_deep(levels)))))  # fmt: skip
        body = _field(1, _field(2, _field(2, _field(5, _wire_deep(levels)) + _field(12, b"toolfault.log"))))  # fmt: skip
        yield Case(f"a log body {levels} objects deep", body, signal="logs")
    for strindex in (8, 9, 100):
        yield Case(f"field {strindex} of a value", _wrapped(_ids() + _field(9, _field(1, b"k") + _field(2, bytes([strindex << 3 & 0x7F, 1])))))  # fmt: skip


def _field(number, payload):
    return _varint(number << 3 | 2) + _varint(len(payload)) + payload


def _varint(number):
    told = []
    while number > 0x7F:
        told.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*told, number])


def _ids():
    return _field(1, otlp.TRACE) + _field(2, otlp.SPAN)


def _wrapped(span, resource_last=False):
    scope = _field(2, _field(2, span))
    resource = _field(1, _field(1, _field(1, b"service.name") + _field(2, _field(1, b"late"))))
    return _field(1, scope + resource if resource_last else resource + scope)


def _wire_deep(levels):
    value = _field(1, b"x")
    for _ in range(levels):
        value = _field(6, _field(1, _field(1, b"k") + _field(2, value)))
    return value


# --- JSON ----------------------------------------------------------------------------------------


def _json_request(**span):
    base = {"traceId": otlp.TRACE.hex(), "spanId": otlp.SPAN.hex(), "name": "execute_tool book"}
    base = {key: value for key, value in (base | span).items() if value is not ...}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [base]}]}]}


def _attribute(value, key="toolfault.message"):
    return _json_request(attributes=[{"key": key, "value": value}, _OUTCOME])


_OUTCOME = {"key": "toolfault.outcome", "value": {"stringValue": "failed"}}


def _json_deep(levels):
    value = {"stringValue": "x"}
    for _ in range(levels):
        value = {"kvlistValue": {"values": [{"key": "k", "value": value}]}}
    return value


def _json():
    texts = {
        "an empty object": ("{}", 200),
        "an empty body": ("", 400),
        "null": ("null", 400),
        "an array": ("[]", 400),
        "a text": ('"x"', 400),
        "a number": ("1", 400),
        "cut off": ('{"resourceSpans": [', 400),
        "a trailing comma": ('{"resourceSpans": [],}', 400),
        "two documents": ("{}{}", 400),
        "comments": ("{} // x", 400),
        "protobuf as JSON": ("\x0a\x00", 400),
        "a byte order mark": ("\ufeff{}", 400),
        "spans that are null": ('{"resourceSpans": null}', 200),
        "spans that are an object": ('{"resourceSpans": {}}', 400),
        "spans that are a text": ('{"resourceSpans": "x"}', 400),
        "spans of numbers": ('{"resourceSpans": [1]}', 400),
        "spans of nulls": ('{"resourceSpans": [null]}', 400),
        "snake case": ('{"resource_spans": [{"scope_spans": 1}]}', 200),
        "an unknown key": ('{"resourceSpans": [], "fromTheFuture": {"a": [1]}}', 200),
        "the same key twice": ('{"resourceSpans": [1], "resourceSpans": []}', 200),
        "a resource that is an array": ('{"resourceSpans": [{"resource": []}]}', 400),
        "a scope that is a text": ('{"resourceSpans": [{"scopeSpans": [{"scope": "x"}]}]}', 400),
        "deep arrays": ("[" * 100_000, 400),
        "deep objects": ('{"a":' * 100_000 + "1" + "}" * 100_000, 400),
        "a deep unknown value": ('{"a":' + "[" * 400 + "]" * 400 + "}", 200),
        "an integer of 5,000 digits": ('{"a": ' + "9" * 5000 + "}", 400),
        "an exponent without end": ('{"a": 1e999999999}', 200),
        "NaN as a literal": ('{"a": NaN}', 200),
        "a lone surrogate as a key": ('{"\\ud800": 1}', 200),
        "a quarter million empty arrays": ('{"a": [' + "[]," * 250_000 + "[]]}", 200),
    }
    for name, (text, status) in texts.items():
        yield _json_case(name, text.encode("utf-8", "surrogatepass"), status)
    yield _json_case("UTF-16", "{}".encode("utf-16"), 400)
    yield _json_case("bytes that are not UTF-8", b'{"a": "\xff"}', 400)
    yield _json_case("an overlong encoding", b'{"a": "\xc0\xaf"}', 400)
    yield _json_case("a raw surrogate", b'{"a": "\xed\xa0\x80"}', 400)
    for name, (told, status, rejected) in _json_spans().items():
        yield _json_case(name, json.dumps(told).encode(), status, rejected)
    for levels in (10, 30, 64, 150):
        yield _json_case(f"{levels} objects deep", json.dumps(_attribute(_json_deep(levels))).encode(), 200)  # fmt: skip


def _json_case(name, body, status, rejected=0):
    return Case(f"JSON: {name}", body, status, rejected, content_type=JSON)


def _json_spans():
    request, attribute = _json_request, _attribute
    ids = {
        "upper case ids": ({"traceId": "AB" * 16, "spanId": "CD" * 8}, 200, 0),
        "base64 ids": ({"traceId": "AAECAwQFBgcICQoLDA0ODw=="}, 400, 0),
        "ids with dashes": ({"traceId": "0102-0304"}, 400, 0),
        "ids with spaces": ({"traceId": "01 " * 16}, 400, 0),
        "an odd id": ({"traceId": "abc"}, 400, 0),
        "a short id": ({"traceId": "abcd"}, 200, 1),
        "zero ids": ({"traceId": "0" * 32}, 200, 1),
        "no id": ({"traceId": ...}, 200, 1),
        "a null id": ({"traceId": None}, 200, 1),
        "an id that is a number": ({"traceId": 12}, 400, 0),
        "a kind by name": ({"kind": "SPAN_KIND_CLIENT"}, 400, 0),
        "an unknown kind": ({"kind": 99}, 200, 0),
        "a negative kind": ({"kind": -5}, 200, 0),
        "a kind beyond 32 bits": ({"kind": 2**40}, 400, 0),
        "a kind that is true": ({"kind": True}, 400, 0),
        "a fraction of a kind": ({"kind": 1.5}, 400, 0),
        "a status by name": ({"status": {"code": "STATUS_CODE_ERROR"}}, 400, 0),
        "a status that is a number": ({"status": 2}, 400, 0),
        "a time as a text": ({"startTimeUnixNano": "1800000000000000000"}, 200, 0),
        "a time as a number": ({"startTimeUnixNano": 1800000000000000000}, 200, 0),
        "a time with an exponent": ({"startTimeUnixNano": 1.8e18}, 200, 0),
        "the last time": ({"startTimeUnixNano": str(2**64 - 1)}, 200, 0),
        "a time past the last": ({"startTimeUnixNano": str(2**64)}, 400, 0),
        "a negative time": ({"startTimeUnixNano": -1}, 400, 0),
        "a time in words": ({"startTimeUnixNano": "noon"}, 400, 0),
        "a time of other digits": ({"startTimeUnixNano": "١٢٣"}, 400, 0),
        "a time with underscores": ({"startTimeUnixNano": "1_000"}, 400, 0),
        "a time that is an array": ({"startTimeUnixNano": []}, 400, 0),
        "a time of infinity": ({"startTimeUnixNano": float("inf")}, 400, 0),
        "a name that is a number": ({"name": 1}, 400, 0),
        "a name that is null": ({"name": None}, 200, 0),
        "a name with a lone surrogate": ({"name": "execute_tool \ud800"}, 200, 0),
        "attributes that are an object": ({"attributes": {"a": "b"}}, 400, 0),
        "an attribute without a value": ({"attributes": [{"key": "a"}]}, 200, 0),
        "an attribute without a key": ({"attributes": [{"value": {"stringValue": "x"}}]}, 200, 0),
        "a key that is a number": ({"attributes": [{"key": 1}]}, 400, 0),
        "a key with a lone surrogate": ({"attributes": [{"key": "\udfff"}]}, 200, 0),
        "events that are a text": ({"events": "x"}, 400, 0),
        "unknown keys": ({"flags": "x", "links": 5, "trace_id": 7}, 200, 0),
    }
    values = {
        "a value that is a text": ("x", 400),
        "a value that is null": (None, 200),
        "a value of no kind": ({}, 200),
        "a value of an unknown kind": ({"fromTheFuture": 1}, 200),
        "a value in snake case": ({"string_value": 5}, 200),
        "a value of two kinds": ({"stringValue": "x", "intValue": "1"}, 200),
        "a text that is a number": ({"stringValue": 1}, 400),
        "a lone surrogate": ({"stringValue": "a\ud800b"}, 200),
        "surrogates the wrong way round": ({"stringValue": "\udc00\ud800"}, 200),
        "an integer as a text": ({"intValue": "12"}, 200),
        "an integer as a number": ({"intValue": 12}, 200),
        "an integer past 64 bits": ({"intValue": str(2**63)}, 400),
        "an integer in words": ({"intValue": "twelve"}, 400),
        "a double as a text": ({"doubleValue": "NaN"}, 200),
        "a double of infinity": ({"doubleValue": "-Infinity"}, 200),
        "a double in words": ({"doubleValue": "much"}, 400),
        "a double that is true": ({"doubleValue": True}, 400),
        "a double of 400 digits": ({"doubleValue": 10**400}, 400),
        "a boolean in words": ({"boolValue": "true"}, 400),
        "a boolean that is 1": ({"boolValue": 1}, 400),
        "bytes": ({"bytesValue": "AAEC"}, 200),
        "bytes that are not base64": ({"bytesValue": "é"}, 400),
        "bytes that are a number": ({"bytesValue": 1}, 400),
        "an array of a number": ({"arrayValue": 5}, 400),
        "an array without values": ({"arrayValue": {}}, 200),
        "an array of texts": ({"arrayValue": {"values": ["a"]}}, 400),
        "an object of a number": ({"kvlistValue": {"values": 3}}, 400),
    }
    cases = {name: (request(**told), status, bad) for name, (told, status, bad) in ids.items()}
    return cases | {name: (attribute(told), status, 0) for name, (told, status) in values.items()}


# --- HTTP ----------------------------------------------------------------------------------------


def _http():
    good = otlp.traces(otlp.span(attributes={"toolfault.outcome": "ok"})).SerializeToString()
    packed = gzip.compress(good)
    for method, status in {"GET": 405, "PUT": 405, "DELETE": 405, "HEAD": 405, "OPTIONS": 405, "PATCH": 405}.items():  # fmt: skip
        yield Case(f"{method}", b"", status, method=method)
    for path in ("/", "/v1", "/v1/profiles", "/v1/traces/", "//v1/traces", "/V1/TRACES", "/v1/traces/../../etc/passwd"):  # fmt: skip
        yield Case(f"path {path}", good, 404, path=path)
    for told, status in {
        "application/x-protobuf; charset=utf-8": 200,
        "APPLICATION/X-PROTOBUF": 200,
        "application/protobuf": 415,
        "text/plain": 415,
        "application/grpc": 415,
        "multipart/form-data; boundary=x": 415,
        "application/xml": 415,
        ";": 415,
    }.items():
        yield Case(f"content type {told!r}", good, status, content_type=told)
    yield Case("no content type", good, 415, content_type=None)
    yield Case("JSON with a charset", b"{}", 200, content_type="Application/JSON;charset=UTF-8")
    for coding, body, status in (
        ("gzip", packed, 200),
        ("GZIP", packed, 200),
        ("identity", good, 200),
        ("", good, 200),
        ("gzip", b"", 200),
        ("gzip", good, 400),
        ("gzip", packed[:-1], 400),
        ("gzip", packed[:10], 400),
        ("gzip", packed[:-8] + bytes(8), 400),
        ("gzip", packed + b"garbage", 400),
        ("gzip", packed + packed, 200),
        ("gzip", packed + bytes(100), 200),
        ("gzip", gzip.compress(b"") * 1000, 200),
        ("gzip", gzip.compress(b"") * 2000, 400),
        ("gzip", gzip.compress(bytes(5 * 1024 * 1024)), 413),
        ("gzip", gzip.compress(packed), 400),
        ("deflate", good, 415),
        ("br", good, 415),
        ("zstd", good, 415),
        ("gzip, gzip", gzip.compress(packed), 415),
        ("x-gzip", packed, 415),
    ):
        name = f"coding {coding!r} of {len(body)} bytes, {status}"
        yield Case(name, body, status, headers={"content-encoding": coding})
    yield Case("too large", bytes(4 * 1024 * 1024 + 1), 413)
    yield Case("as large as allowed", b"\xa2\x06" + _varint(4 * 1024 * 1024 - 6) + bytes(4 * 1024 * 1024 - 6))  # fmt: skip
    yield Case("many headers", good, headers={f"x-{i}": "y" * 100 for i in range(80)})
    yield Case("a forged client address", good, headers={"x-forwarded-for": "'; --"})


CASES = [*_values(), *_ids_and_times(), *_wire(), *_json(), *_http()]
