"""OTLP over HTTP: an ASGI app for /v1/traces, /v1/logs and /v1/metrics."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NamedTuple

from google.protobuf.json_format import MessageToDict
from google.rpc.status_pb2 import Status
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from toolfault.conventions import MAX_REQUEST_BYTES
from toolfault.ingest.errors import (
    IngestError,
    RetryableError,
    UnauthenticatedError,
)
from toolfault.ingest.pipeline import Admission, Pipeline
from toolfault.ingest.receiver import SIGNALS, Receiver, Signal, too_large

_log = logging.getLogger(__name__)
PROTOBUF, JSON = "application/x-protobuf", "application/json"
_BODY_SECONDS = 30.0
_DRAIN_SECONDS = 5.0
_SIGNALS = {f"/v1/{signal.name}": signal for signal in SIGNALS}

#: Given the Authorization header (empty if there is none): the client's name, or an IngestError.
Authorize = Callable[[str], Awaitable[str]]


class _RefusedError(IngestError):
    """A request that HTTP itself rules out."""

    def __init__(self, http_status: int, message: str) -> None:
        super().__init__(message)
        self.http_status = http_status


class _TooSlowError(_RefusedError):
    """A body that does not come."""

    def __init__(self, seconds: float) -> None:
        super().__init__(408, f"the body did not arrive within {seconds:g} s")


class _Incoming:
    """A body while it comes."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.ended = False

    async def chunks(self) -> AsyncIterator[bytes]:
        """What has not been read yet."""
        while not self.ended:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            self.ended = not message.get("more_body", False)
            yield message.get("body", b"")

    async def drain(self) -> None:
        """Read what is left, without keeping it: an answer before the end is lost with the connection."""
        try:
            async with asyncio.timeout(_DRAIN_SECONDS):
                async for _ in self.chunks():
                    pass
        except TimeoutError:
            return


class _Form(NamedTuple):
    """How a body is written."""

    is_json: bool
    is_gzip: bool


def make_app(
    pipeline: Pipeline, *, max_bytes: int = MAX_REQUEST_BYTES, authorize: Authorize | None = None
) -> ASGIApp:
    """The ASGI app of the OTLP/HTTP port.

    Args:
        pipeline: where records go.
        max_bytes: of one body, before and after decompression.
        authorize: told the Authorization header of each request; None lets everybody in.
    """
    receiver = Receiver(pipeline, max_bytes)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                answer = await _answered(receiver, HTTPConnection(scope), receive, authorize)
            except ClientDisconnect:
                return
            await answer(scope, receive, send)

    return app


async def _answered(
    receiver: Receiver, request: HTTPConnection, receive: Receive, authorize: Authorize | None
) -> Response:
    began, incoming = time.perf_counter(), _Incoming(receive)
    is_json = _content_type(request.headers) == JSON
    signal = _SIGNALS.get(request.url.path)
    try:
        response = await _received(receiver, request, incoming, signal, authorize)
        answer = _body(response, is_json=is_json, status=200)
    except ClientDisconnect:
        raise
    except IngestError as error:
        if not isinstance(error, _TooSlowError):
            await incoming.drain()
        answer = _failure(error, is_json=is_json)
        if not incoming.ended:
            answer.headers["connection"] = "close"
    except Exception:  # noqa: BLE001 - outermost: a bug of ours is told as retryable, not as a lost batch
        _log.exception("a request could not be handled")
        answer = _failure(RetryableError("internal error", 5), is_json=is_json, status=503)
    told = signal.name if signal else "none"
    metrics = receiver.pipeline.metrics
    metrics.requests.labels("http", told, str(answer.status_code)).inc()
    metrics.duration.labels("http").observe(time.perf_counter() - began)
    return answer


async def _received(
    receiver: Receiver,
    request: HTTPConnection,
    incoming: _Incoming,
    signal: Signal | None,
    authorize: Authorize | None,
) -> Any:
    if signal is None:
        raise _RefusedError(404, "OTLP is taken at /v1/traces, /v1/logs and /v1/metrics")
    if request.scope["method"] != "POST":
        raise _RefusedError(405, "OTLP is sent by POST")
    client = request.client.host if request.client else ""
    if authorize is not None:
        client = await authorize(request.headers.get("authorization", ""))
    form = _form(request.headers)
    with receiver.pipeline.admit(client) as admission:
        body = await _read(request.headers, incoming, admission, receiver.max_bytes)
        return await receiver.receive(
            signal, body, admission, is_json=form.is_json, is_gzip=form.is_gzip
        )


def _content_type(headers: Headers) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _form(headers: Headers) -> _Form:
    content_type = _content_type(headers)
    if content_type not in (PROTOBUF, JSON):
        raise _RefusedError(415, f"the content type must be {PROTOBUF} or {JSON}")
    coding = headers.get("content-encoding", "").strip().lower()
    if coding not in ("", "identity", "gzip"):
        raise _RefusedError(415, "the content encoding must be gzip or identity")
    return _Form(content_type == JSON, coding == "gzip")


async def _read(
    headers: Headers, incoming: _Incoming, admission: Admission, max_bytes: int
) -> bytes:
    told = headers.get("content-length", "")
    if told.isascii() and told.isdigit() and len(told) < 20:
        too_large(max_bytes, int(told))
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for chunk in incoming.chunks():
                size += len(chunk)
                too_large(max_bytes, size)
                admission.grow(len(chunk))
                chunks.append(chunk)
    except TimeoutError:
        raise _TooSlowError(_BODY_SECONDS) from None
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _failure(error: IngestError, *, is_json: bool, status: int | None = None) -> Response:
    told = Status(code=error.rpc_code, message=str(error))
    answer = _body(told, is_json=is_json, status=status or error.http_status)
    if isinstance(error, RetryableError):
        answer.headers["retry-after"] = str(error.retry_after)
    if isinstance(error, UnauthenticatedError):
        answer.headers["www-authenticate"] = "Bearer"
    if answer.status_code == 405:
        answer.headers["allow"] = "POST"
    return answer


def _body(message: Any, *, is_json: bool, status: int) -> Response:
    if is_json:
        return Response(json.dumps(MessageToDict(message)), status, media_type=JSON)
    return Response(message.SerializeToString(), status, media_type=PROTOBUF)
