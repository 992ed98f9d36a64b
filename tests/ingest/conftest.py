"""A running service: real HTTP and gRPC servers before a pipeline on a real database."""

import asyncio
import socket
import threading
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import grpc
import httpx
import psycopg
import pytest
import uvicorn
from psycopg.rows import namedtuple_row

from toolfault.ingest import grpc as ingest_grpc
from toolfault.ingest.http import make_app
from toolfault.ingest.pipeline import Pipeline
from toolfault.store import partitions, schema


def method(signal):
    """The gRPC method of a signal."""
    service = {"traces": "trace.v1.Trace", "logs": "logs.v1.Logs", "metrics": "metrics.v1.Metrics"}
    return f"/opentelemetry.proto.collector.{service[signal]}Service/Export"


class Service:
    """Addresses and clients of a running service."""

    def __init__(self, pipeline, url, http_port, grpc_port):
        self.pipeline, self.url = pipeline, url
        self.http_port, self.grpc_port = http_port, grpc_port
        self.client = httpx.AsyncClient(base_url=f"http://127.0.0.1:{http_port}", timeout=30)
        self.channel = grpc.aio.insecure_channel(
            f"127.0.0.1:{grpc_port}", options=[("grpc.max_send_message_length", -1)]
        )

    async def post(self, signal, body, content_type="application/x-protobuf", **headers):
        """The HTTP answer; header names in arguments have underscores."""
        told = {name.replace("_", "-"): value for name, value in headers.items()}
        if content_type is not None:
            told["content-type"] = content_type
        return await self.client.post(f"/v1/{signal}", content=body, headers=told)

    async def call(self, signal, body, compression=None):
        """The gRPC answer's bytes."""
        service = {
            "traces": "trace.v1.Trace",
            "logs": "logs.v1.Logs",
            "metrics": "metrics.v1.Metrics",
        }
        path = f"/opentelemetry.proto.collector.{service[signal]}Service/Export"
        return await self.channel.unary_unary(path)(body, compression=compression)

    def rows(self, statement, *values):
        """Rows of the database."""
        with psycopg.connect(self.url, row_factory=namedtuple_row) as conn:
            return conn.execute(statement, values).fetchall()

    def metric(self, name, **labels):
        """A sample of the service's own metrics."""
        return self.pipeline.metrics.registry.get_sample_value(name, labels)


@asynccontextmanager
async def serving(url, *, limits=None, max_bytes=4 * 1024 * 1024, authorize=None):
    async with Pipeline(url, limits=limits) as pipeline:
        app = make_app(pipeline, max_bytes=max_bytes, authorize=authorize)
        rpc = grpc.aio.server(options=ingest_grpc.options(max_bytes))
        ingest_grpc.add_services(rpc, pipeline, max_bytes=max_bytes, authorize=authorize)
        grpc_port = rpc.add_insecure_port("127.0.0.1:0")
        await rpc.start()
        listener = socket.create_server(("127.0.0.1", 0))
        web = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off"))
        serving = asyncio.create_task(web._serve([listener]))
        service = Service(pipeline, url, listener.getsockname()[1], grpc_port)
        try:
            yield service
        finally:
            await service.client.aclose()
            await service.channel.close()
            web.should_exit = True
            await serving
            await rpc.stop(0)
            listener.close()


@pytest.fixture
async def service(database_url):
    async with serving(database_url) as running:
        yield running


@pytest.fixture(scope="module")
def shared_url(_databases):
    """A database for all tests of a module."""
    url = _databases.create()
    schema.upgrade(url)
    with psycopg.connect(url) as conn:
        partitions.maintain(conn, datetime.now(UTC), partitions.Retention(days=7))
    yield url
    _databases.drop(url)


@pytest.fixture(scope="module")
def shared(shared_url):
    """A service for all tests of a module, in a thread; its clients are blocking ones."""
    ready, ports = threading.Event(), {}

    async def serve():
        async with serving(shared_url) as running:
            ports.update(service=running, loop=asyncio.get_running_loop(), stop=asyncio.Event())
            ready.set()
            await ports["stop"].wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(30)
    running = ports["service"]
    address = f"127.0.0.1:{running.grpc_port}"
    with (
        httpx.Client(base_url=f"http://127.0.0.1:{running.http_port}", timeout=30) as client,
        grpc.insecure_channel(address, options=[("grpc.max_send_message_length", -1)]) as channel,
    ):
        yield Shared(running, client, channel)
    ports["loop"].call_soon_threadsafe(ports["stop"].set)
    thread.join()


class Shared:
    """Blocking clients of a running service."""

    def __init__(self, service, client, channel):
        self.service, self.client, self.channel = service, client, channel
        self.rows, self.metric = service.rows, service.metric

    def post(self, path, body, headers):
        """The HTTP answer."""
        return self.client.post(path, content=body, headers=headers)

    def call(self, signal, body):
        """The gRPC code and the answer's bytes."""
        try:
            return grpc.StatusCode.OK, self.channel.unary_unary(method(signal))(body, timeout=30)
        except grpc.RpcError as error:
            return error.code(), b""
