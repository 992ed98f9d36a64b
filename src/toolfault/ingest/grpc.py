"""OTLP over gRPC: the trace, logs and metrics services on a grpc.aio server.

Handlers take and give bytes: gRPC's own decompression has no limit, so it is switched off by
`options` and messages are unpacked by the same bounded code as over HTTP.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

import grpc
from google.protobuf.duration_pb2 import Duration
from google.rpc.code_pb2 import Code
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from toolfault.conventions import MAX_REQUEST_BYTES
from toolfault.ingest.errors import IngestError, RetryableError
from toolfault.ingest.http import Authorize
from toolfault.ingest.pipeline import Pipeline
from toolfault.ingest.receiver import GZIP_MAGIC, SIGNALS, Receiver, Signal

_log = logging.getLogger(__name__)
_STATUS_DETAILS = "grpc-status-details-bin"
_CODES = {code.value[0]: code for code in grpc.StatusCode}
_IDENTITY, _GZIP = 1 << 0, 1 << 2
_STREAMS = 32

_Handler = Callable[[bytes, Any], Awaitable[bytes]]


def options(max_bytes: int = MAX_REQUEST_BYTES) -> list[tuple[str, int]]:
    """Options the server must be made with, for its limits to hold."""
    return [
        ("grpc.max_receive_message_length", max_bytes),
        ("grpc.per_message_decompression", 0),
        ("grpc.compression_enabled_algorithms_bitset", _IDENTITY | _GZIP),
        # More of one client wait on its side. grpc's own limit on calls (maximum_concurrent_rpcs)
        # answers RESOURCE_EXHAUSTED without RetryInfo, on which a client throws its data away.
        ("grpc.max_concurrent_streams", _STREAMS),
        # Else streams that have just ended count too, and new ones are refused without RetryInfo.
        ("grpc.http.overload_protection", 0),
        ("grpc.server_handshake_timeout_ms", 30_000),
        ("grpc.keepalive_time_ms", 60_000),  # finds clients that went without a word
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", 10_000),  # Collectors ping this often
        ("grpc.max_connection_idle_ms", 300_000),
    ]


def add_services(
    server: grpc.aio.Server,
    pipeline: Pipeline,
    *,
    max_bytes: int = MAX_REQUEST_BYTES,
    authorize: Authorize | None = None,
) -> None:
    """Add the three OTLP services to a server made with `options`.

    Args:
        server: not yet started.
        pipeline: where records go.
        max_bytes: of one message, before and after decompression.
        authorize: told the authorization metadata of each request; None lets everybody in.
    """
    receiver = Receiver(pipeline, max_bytes)
    server.add_generic_rpc_handlers(
        tuple(
            grpc.method_handlers_generic_handler(
                signal.service,
                {
                    "Export": grpc.unary_unary_rpc_method_handler(
                        _handler(receiver, signal, authorize)
                    )
                },
            )
            for signal in SIGNALS
        )
    )


def _handler(receiver: Receiver, signal: Signal, authorize: Authorize | None) -> _Handler:
    metrics = receiver.pipeline.metrics

    async def export(body: bytes, context: Any) -> bytes:
        began = time.perf_counter()
        code = Code.OK
        try:
            return await _received(receiver, signal, body, context, authorize)
        except IngestError as error:
            code = error.rpc_code
            await _abort(context, error)
        except Exception:  # noqa: BLE001 - outermost: a bug of ours is told as retryable, not as a lost batch
            _log.exception("a request could not be handled")
            code = Code.UNAVAILABLE
            await _abort(context, RetryableError("internal error", 5))
        finally:
            metrics.requests.labels("grpc", signal.name, Code.Name(code)).inc()
            metrics.duration.labels("grpc").observe(time.perf_counter() - began)

    return export


async def _received(
    receiver: Receiver, signal: Signal, body: bytes, context: Any, authorize: Authorize | None
) -> bytes:
    client = context.peer().rpartition(":")[0]
    if authorize is not None:
        client = await authorize(_authorization(context))
    with receiver.pipeline.admit(client) as admission:
        admission.grow(len(body))
        # No OTLP message begins like this: it would be a wire type that does not exist.
        is_gzip = body[:2] == GZIP_MAGIC
        response = await receiver.receive(signal, body, admission, is_json=False, is_gzip=is_gzip)
        return bytes(response.SerializeToString())


def _authorization(context: Any) -> str:
    for key, value in context.invocation_metadata() or ():
        if key == "authorization" and isinstance(value, str):
            return value
    return ""


async def _abort(context: Any, error: IngestError) -> NoReturn:
    status = Status(code=error.rpc_code, message=str(error))
    if isinstance(error, RetryableError):
        # Without it a client may not resend RESOURCE_EXHAUSTED, and guesses the delay of UNAVAILABLE.
        status.details.add().Pack(RetryInfo(retry_delay=Duration(seconds=error.retry_after)))
    await context.abort(
        _CODES[error.rpc_code], str(error), ((_STATUS_DETAILS, status.SerializeToString()),)
    )
    raise AssertionError  # abort raises
