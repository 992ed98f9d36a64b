"""What both transports do with a request's bytes, and what they answer."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs_pb
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics_pb
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as trace_pb

from toolfault.ingest import decode, select
from toolfault.ingest.decode import Gunzip
from toolfault.ingest.errors import TooLargeError
from toolfault.ingest.pipeline import Admission, Pipeline
from toolfault.ingest.select import Batch

GZIP_MAGIC = b"\x1f\x8b"
#: Smaller bodies are worked on at once: changing threads would take longer.
_AT_ONCE = 8_192
#: Larger ones have a thread of their own, so that one of them does not hold up everybody.
_LARGE = 4 * 1024 * 1024
_T = TypeVar("_T")


class Signal(NamedTuple):
    """One kind of telemetry: its names, its messages, what becomes of it."""

    name: str
    service: str  # gRPC
    rejected: str  # field of partial_success
    response: type[Any]
    batches: Callable[[bytes, bool, datetime], Iterator[Batch]]


def _traces(body: bytes, is_json: bool, received_at: datetime) -> Iterator[Batch]:
    return select.spans(decode.traces(body, is_json=is_json), received_at)


def _logs(body: bytes, is_json: bool, received_at: datetime) -> Iterator[Batch]:
    return select.log_records(decode.logs(body, is_json=is_json), received_at)


def _metrics(body: bytes, is_json: bool, _: datetime) -> Iterator[Batch]:
    yield Batch(ignored=decode.metrics(body, is_json=is_json))


_COLLECTOR = "opentelemetry.proto.collector"
SIGNALS = (
    Signal("traces", f"{_COLLECTOR}.trace.v1.TraceService", "rejected_spans",
           trace_pb.ExportTraceServiceResponse, _traces),
    Signal("logs", f"{_COLLECTOR}.logs.v1.LogsService", "rejected_log_records",
           logs_pb.ExportLogsServiceResponse, _logs),
    Signal("metrics", f"{_COLLECTOR}.metrics.v1.MetricsService", "rejected_data_points",
           metrics_pb.ExportMetricsServiceResponse, _metrics),
)  # fmt: skip


class Receiver:
    """Takes request bodies; answers when what is in them is committed.

    Args:
        pipeline: where batches go.
        max_bytes: of one body after decompression.
    """

    def __init__(self, pipeline: Pipeline, max_bytes: int) -> None:
        self.pipeline, self.max_bytes = pipeline, max_bytes
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="toolfault-decode")
        self._threads_of_large = ThreadPoolExecutor(1, thread_name_prefix="toolfault-decode-large")

    async def receive(
        self, signal: Signal, body: bytes, admission: Admission, *, is_json: bool, is_gzip: bool
    ) -> Any:
        """The response for a request, after everything that can be stored of it is committed.

        Args:
            signal: what it holds.
            body: as it came; already held by `admission`.
            admission: of this request.
            is_json: its encoding.
            is_gzip: whether it is compressed.

        Raises:
            IngestError: it is not taken.
        """
        if is_gzip:
            body = await self._decompressed(body, admission)
        threads = self._threads if len(body) < _LARGE else self._threads_of_large
        here = threads if len(body) > _AT_ONCE else None
        batches = signal.batches(body, is_json, datetime.now(UTC))
        refused: Counter[str] = Counter()
        ignored = 0
        while (batch := await _in(here, lambda: next(batches, None))) is not None:
            await self.pipeline.submit(batch, admission.client)
            refused += batch.refused
            ignored += batch.ignored
        self.pipeline.metrics.count_records(signal.name, ignored, refused)
        return _response(signal, refused)

    async def _decompressed(self, body: bytes, admission: Admission) -> bytes:
        loop = asyncio.get_running_loop()
        gunzip = Gunzip(self.max_bytes)
        if len(body) <= _AT_ONCE:
            plain = gunzip.run(body)
        else:
            plain = await loop.run_in_executor(self._threads_of_large, gunzip.run, body)
        admission.grow(len(plain))
        admission.shrink(len(body))
        return plain


async def _in(threads: Executor | None, work: Callable[[], _T]) -> _T:
    return await asyncio.get_running_loop().run_in_executor(threads, work) if threads else work()


def _response(signal: Signal, refused: Counter[str]) -> Any:
    response = signal.response()
    if total := refused.total():
        # Unset otherwise: a client tells full from partial success by its presence.
        setattr(response.partial_success, signal.rejected, total)
        response.partial_success.error_message = "; ".join(_explained(refused.items()))
    return response


def _explained(refused: Iterable[tuple[str, int]]) -> Iterator[str]:
    for reason, amount in sorted(refused):
        yield f"{amount} refused: {_EXPLANATIONS[reason]}"


_EXPLANATIONS = {
    select.INVALID_ID: "a span needs a trace id of 16 and a span id of 8 bytes, not all zero (invalid_id)",
    "not_storable": "the database does not take such a record (not_storable)",
}


def too_large(max_bytes: int, size: int) -> None:
    """Stop reading a body that is over the limit.

    Raises:
        TooLargeError: it is.
    """
    if size > max_bytes:
        raise TooLargeError(max_bytes)
