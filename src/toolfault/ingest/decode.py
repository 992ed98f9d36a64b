"""Request bytes to records, one at a time: protobuf and gzip; JSON is `otlp_json`'s.

A request whose bytes are not what they say is refused whole (400, INVALID_ARGUMENT). What is well
formed but odd (bad UTF-8 in a value, values nested a hundred deep) costs at most itself.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError

from toolfault.ingest import otlp_json, wire
from toolfault.ingest.errors import MalformedError, TooLargeError

#: gzip members of one body; more of them cost time and carry nothing.
MAX_MEMBERS = 1024
#: Resources and scopes of one request.
MAX_GROUPS = 100_000
#: Spans or log records of one request.
MAX_RECORDS = 2_000_000
_STEP = 256 * 1024
_RESOURCE = _SCOPE = 1  # in the message of a resource and of a scope, the same in every signal
_CHILDREN = 2

wire.require_upb()


class Group(NamedTuple):
    """The records of one scope of one resource."""

    resource: bytes  # as it came over the wire: the key of what was read from it before
    scope: bytes
    records: Iterator[Any]


def traces(body: bytes, *, is_json: bool) -> Iterator[Group]:
    """The spans of an ExportTraceServiceRequest."""
    if is_json:
        return _from_json(body, otlp_json.TRACES)
    return _groups(body, wire.Span.FromString)


def logs(body: bytes, *, is_json: bool) -> Iterator[Group]:
    """The log records of an ExportLogsServiceRequest."""
    if is_json:
        return _from_json(body, otlp_json.LOGS)
    return _groups(body, wire.LogRecord.FromString)


def metrics(body: bytes, *, is_json: bool) -> int:
    """How many metrics an ExportMetricsServiceRequest holds; they are read no further."""
    if is_json:
        return otlp_json.count_metrics(body)
    return sum(1 for group in _groups(body, len) for _ in group.records)


def _from_json(body: bytes, signal: otlp_json.Signal) -> Iterator[Group]:
    for group in otlp_json.groups(body, signal):
        yield Group(*group)


def _groups(body: bytes, parse: Callable[[bytes], Any]) -> Iterator[Group]:
    budget = [MAX_GROUPS, MAX_RECORDS]
    for resource, scopes in _nested(body, wire.fields(body, 0, len(body)), _RESOURCE, budget):
        for scope, records in _nested(body, scopes, _CHILDREN, budget):
            yield Group(resource, scope, _records(body, records, parse, budget))


def _nested(
    data: bytes, fields: Iterator[tuple[int, int, int]], number: int, budget: list[int]
) -> Iterator[tuple[bytes, Iterator[tuple[int, int, int]]]]:
    """Of each child with that number: its own first field and an iterator of its children."""
    for found, start, end in fields:
        if found == number:
            budget[0] -= 1
            if budget[0] < 0:
                raise MalformedError(f"the request holds more than {MAX_GROUPS:,} groups")
            # Fields come in any order, so the first one is looked for before the children are read.
            head = [data[a:b] for n, a, b in wire.fields(data, start, end) if n == _RESOURCE]
            yield b"".join(head), wire.fields(data, start, end)


def _records(
    data: bytes,
    fields: Iterator[tuple[int, int, int]],
    parse: Callable[[bytes], Any],
    budget: list[int],
) -> Iterator[Any]:
    for number, start, end in fields:
        if number == _CHILDREN:
            budget[1] -= 1
            if budget[1] < 0:
                raise MalformedError(f"the request holds more than {MAX_RECORDS:,} records")
            try:
                record = parse(data[start:end])
            except DecodeError as error:
                raise MalformedError(f"a record is malformed: {error}") from None
            yield record


class Gunzip:
    """Bounded decompression of a body, or of a part of it after another.

    Args:
        max_bytes: decompressed bytes allowed.
        grown: told of each piece's size, before the next one is made.
    """

    def __init__(self, max_bytes: int, grown: Callable[[int], None] = lambda _: None) -> None:
        self._max_bytes, self._grown = max_bytes, grown
        self._out = bytearray()
        self._members = 0

    def run(self, body: bytes) -> bytes:
        """The decompressed body; an empty body is an empty request."""
        while body:
            self._members += 1
            if self._members > MAX_MEMBERS:
                raise MalformedError(f"the gzip body has more than {MAX_MEMBERS} members")
            body = self._member(body)
        return bytes(self._out)

    def _member(self, body: bytes) -> bytes:
        member = zlib.decompressobj(31)
        pending = body
        try:
            while not member.eof:
                piece = member.decompress(pending, _STEP)
                pending = member.unconsumed_tail
                if not piece and not pending and not member.eof:
                    raise MalformedError("the gzip body is cut off")
                self._add(piece)
        except zlib.error:
            raise MalformedError("the body is not valid gzip") from None
        return member.unused_data.lstrip(b"\0")  # zero padding after the end is allowed

    def _add(self, piece: bytes) -> None:
        if len(self._out) + len(piece) > self._max_bytes:
            raise TooLargeError(self._max_bytes)
        self._grown(len(piece))
        self._out += piece
