"""OTLP over gRPC and HTTP, the pages and the metrics, on one asyncio loop."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
import sys
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

import grpc
import psycopg
import uvicorn
from prometheus_client import CollectorRegistry

from toolfault import ports
from toolfault.alerts.settings_file import read as read_alerts
from toolfault.connections import IDLE_SECONDS, TimedProtocol
from toolfault.ingest import grpc as ingest_grpc
from toolfault.ingest import http as ingest_http
from toolfault.ingest.pipeline import Pipeline
from toolfault.ports import Addresses
from toolfault.senders import Senders
from toolfault.settings import StartError
from toolfault.store import partitions
from toolfault.store.connect import connect
from toolfault.store.errors import StoreError
from toolfault.store.partitions import Retention
from toolfault.store.queries.base import open_engine
from toolfault.store.tokens import has_tokens
from toolfault.web import app as web_app
from toolfault.web.cards import Links

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from socket import socket

    from sqlalchemy import Engine
    from starlette.types import ASGIApp

    from toolfault.settings import Settings

_log = logging.getLogger(__name__)
_MAINTENANCE_SECONDS = 3600
_REVIVAL_SECONDS = 1
_DRAIN_SECONDS = 10
#: How long a thread may keep the interpreter while another one waits. A look-up asks for its turn
#: after each round trip to the database; Python's 5 ms add up while a large batch is decoded.
_TURN_SECONDS = 0.0005
#: Rows hold no cycles, but what the driver makes of an answer does, and whoever asks meanwhile waits until all that
#: were left are collected: 2,000 objects take 5 ms, 50,000 took up to 160.
_GC_THRESHOLD = (2_000, 20, 50)


def serve(
    settings: Settings,
    url: str,
    sockets: dict[str, socket],
    revive: Callable[[], bool] | None,
    announce: Callable[[Addresses], None],
) -> None:
    """Serve until Ctrl-C or SIGTERM; requests under way are finished first.

    Args:
        settings: of the service.
        url: of a database with this version's schema.
        sockets: by the port's name, listening.
        revive: starts the database again if it has died, and says whether it had.
        announce: called once, when every port answers.

    Raises:
        StartError: other machines would reach the service, and no token guards it.
        SettingError: the alerts' settings cannot be used.
    """
    sys.setswitchinterval(_TURN_SECONDS)
    gc.freeze()  # what was imported stays: going through it would stop every thread for 50 ms
    gc.set_threshold(*_GC_THRESHOLD)
    _maintain(url, settings)
    engine = open_engine(url)
    try:
        _refuse_open_door(settings, engine)
        asyncio.run(_Service(settings, url, engine, sockets, revive).serve(announce))
    finally:
        engine.dispose()


def _refuse_open_door(settings: Settings, engine: Engine) -> None:
    if not ports.is_loopback(settings.host) and not has_tokens(engine):
        raise StartError(
            f"{settings.host} can be reached from other machines, and no token guards the service. "
            "Make one first: toolfault token create NAME --role admin"
        )


def _maintain(url: str, settings: Settings) -> None:
    kept = Retention(
        settings.retention_ok_days, settings.retention_days, settings.retention_outline_days
    )
    with connect(url) as conn:
        partitions.maintain(conn, datetime.now(UTC), kept)


class _Web(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the service: there are two of these in its loop."""
        yield


class _Service:
    """Everything that runs on the loop."""

    def __init__(
        self,
        settings: Settings,
        url: str,
        engine: Engine,
        sockets: dict[str, socket],
        revive: Callable[[], bool] | None,
    ) -> None:
        self._settings = settings
        self._url = url
        self._engine = engine
        self._revive = revive
        self._alerts = read_alerts(settings.alerts_file) if settings.alerts_file else None
        self._is_open = ports.is_loopback(settings.host)
        self._authorize = None if self._is_open else Senders(engine).authorize
        self._registry = CollectorRegistry()
        self._sockets = sockets
        self._ports = {name: ports.port_of(opened) for name, opened in sockets.items()}
        self._stop = asyncio.Event()

    async def serve(self, announce: Callable[[Addresses], None]) -> None:
        """Serve until told to stop, then finish what is under way."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        async with AsyncExitStack() as stack:
            pipeline = await stack.enter_async_context(Pipeline(self._url, self._registry))
            rpc = await self._start_grpc(pipeline)
            webs = {
                "http": self._web(self._ingest_app(pipeline), lifespan="off"),
                "web": self._web(self._web_app(pipeline), lifespan="on"),
            }
            serving = [
                asyncio.create_task(web.serve([self._sockets[name]])) for name, web in webs.items()
            ]
            upkeep = [asyncio.create_task(self._keep_partitions())]
            if self._revive is not None:
                upkeep.append(asyncio.create_task(self._keep_database(self._revive)))
            stopped = asyncio.create_task(self._stop.wait())
            announce(self._addresses())
            await asyncio.wait([stopped, *serving], return_when=asyncio.FIRST_COMPLETED)
            for task in upkeep:
                task.cancel()
            await asyncio.gather(*upkeep, return_exceptions=True)
            for web in webs.values():
                web.should_exit = True
            await asyncio.gather(rpc.stop(_DRAIN_SECONDS), *serving)

    async def _start_grpc(self, pipeline: Pipeline) -> grpc.aio.Server:
        server = grpc.aio.server(
            options=[
                *ingest_grpc.options(self._settings.max_request_bytes),
                ("grpc.so_reuseport", 0),  # else a second service would share the port unnoticed
            ]
        )
        ingest_grpc.add_services(
            server,
            pipeline,
            max_bytes=self._settings.max_request_bytes,
            authorize=self._authorize,
        )
        # gRPC opens its own socket; ours has kept the port free for it until now.
        place = ports.place(self._settings.host, self._ports["grpc"])
        self._sockets["grpc"].close()
        if (credentials := self._credentials()) is None:
            server.add_insecure_port(place)
        else:
            server.add_secure_port(place, credentials)
        await server.start()
        return server

    def _credentials(self) -> grpc.ServerCredentials | None:
        certificate, key = self._settings.tls_certificate, self._settings.tls_key
        if certificate is None or key is None:
            return None
        return grpc.ssl_server_credentials([(ports.pem(key), ports.pem(certificate))])

    def _ingest_app(self, pipeline: Pipeline) -> ASGIApp:
        return ingest_http.make_app(
            pipeline, max_bytes=self._settings.max_request_bytes, authorize=self._authorize
        )

    def _web_app(self, pipeline: Pipeline) -> ASGIApp:
        return web_app.make_app(
            self._engine,
            registry=self._registry,
            readiness=pipeline.problem,
            base_url=self._settings.base_url,
            is_open=self._is_open,
            links=Links(self._settings.trace_link, self._settings.log_link),
            retention_days=self._settings.retention_days,
            alerts=self._alerts,
        )

    def _web(self, app: ASGIApp, *, lifespan: Literal["on", "off"]) -> uvicorn.Server:
        return _Web(
            uvicorn.Config(
                app,
                http=TimedProtocol,
                timeout_keep_alive=IDLE_SECONDS,
                lifespan=lifespan,
                log_config=None,
                access_log=False,
                server_header=False,
                ws="none",
                timeout_graceful_shutdown=_DRAIN_SECONDS,
                ssl_certfile=self._settings.tls_certificate,
                ssl_keyfile=self._settings.tls_key,
            )
        )

    def _addresses(self) -> Addresses:
        scheme = "https" if self._settings.tls_certificate else "http"
        at = {
            name: f"{scheme}://{ports.place(self._settings.host, port)}"
            for name, port in self._ports.items()
        }
        return Addresses(**at)

    async def _keep_partitions(self) -> None:
        while True:
            await asyncio.sleep(_MAINTENANCE_SECONDS)
            try:
                await asyncio.to_thread(_maintain, self._url, self._settings)
            except (StoreError, psycopg.Error) as error:
                _log.warning("partitions were not maintained, next try in an hour: %s", error)

    async def _keep_database(self, revive: Callable[[], bool]) -> None:
        while True:
            await asyncio.sleep(_REVIVAL_SECONDS)
            try:
                if await asyncio.to_thread(revive):
                    _log.warning("the embedded PostgreSQL had died and was started again")
            except (StoreError, OSError) as error:
                _log.warning("the embedded PostgreSQL has died, next try in a moment: %s", error)
