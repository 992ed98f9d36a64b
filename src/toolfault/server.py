"""One process: the store, and everything that is served from it.

Starting PostgreSQL takes a second and importing what is served takes three, so they go side by side;
that is why `toolfault.serving` is imported inside functions here.
"""

from __future__ import annotations

import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from toolfault import ports, service_log
from toolfault.store import schema
from toolfault.store.embedded import EmbeddedPostgres

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from toolfault.ports import Addresses
    from toolfault.settings import Settings

_PORTS = ("grpc", "http", "web")


def run(settings: Settings, announce: Callable[[Addresses], None]) -> None:
    """Serve until Ctrl-C or SIGTERM; requests under way are finished first.

    Args:
        settings: of the service.
        announce: called once, when every port answers.

    Raises:
        StartError: a port, a file or an address cannot be used.
        StoreError: the database cannot be used.
    """
    service_log.configure(settings.log_level)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))  # while starting; serving has its own
    with ExitStack() as stack:
        # Ports first: whoever starts a second service hears it before a database is touched.
        sockets = {name: stack.enter_context(ports.listen(settings, name)) for name in _PORTS}
        url, revive = stack.enter_context(_database(settings))
        from toolfault import serving  # noqa: PLC0415 - as said above

        serving.serve(settings, url, sockets, revive, announce)


@contextmanager
def _database(settings: Settings) -> Iterator[tuple[str, Callable[[], bool] | None]]:
    """The database's address, with its schema in place; if it is our own, also what revives it."""
    if settings.database_url:
        schema.require_current(settings.database_url)
        yield settings.database_url, None
        return
    embedded = EmbeddedPostgres(settings.data_dir)
    try:
        url = _started(embedded)
        schema.upgrade(url)
        yield url, embedded.revive
    finally:
        embedded.stop()


def _started(embedded: EmbeddedPostgres) -> str:
    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(embedded.start)
        from toolfault import serving  # noqa: F401, PLC0415 - as said above

        return starting.result()
