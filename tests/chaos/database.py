"""A PostgreSQL that a test may stop at once, start again and freeze."""

import os
import signal
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from toolfault.store import schema
from toolfault.store.embedded import EmbeddedPostgres

_WITHIN = 60.0  # s


def until(condition, within=_WITHIN):
    """Waits until `condition()` is true."""
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.02)


class Database:
    """One server with one database."""

    def __init__(self, folder):
        self._embedded = EmbeddedPostgres(folder)
        self._server_url = self._embedded.start()
        self._port = urlsplit(self._server_url).port
        self.url = f"{self._server_url.rpartition('/')[0]}/chaos"
        self._do("CREATE DATABASE chaos")
        schema.upgrade(self.url)

    def close(self):
        self._embedded.stop()

    def _do(self, *statements):
        with psycopg.connect(self._server_url, autocommit=True) as conn:
            for statement in statements:
                conn.execute(statement)

    def rows(self, statement, *values):
        with psycopg.connect(self.url) as conn:
            return conn.execute(statement, values).fetchall()

    def stop_at_once(self):
        """`pg_ctl stop -m immediate`: no shutdown checkpoint, recovery at the next start."""
        server = self._embedded._server
        server.send_signal(signal.SIGQUIT)
        server.wait()

    def start_again(self):
        until(lambda: self._embedded._launch(self._port))

    @contextmanager
    def frozen(self):
        """All its processes stopped, as on a machine that hangs."""
        pid = self._embedded._server.pid
        children = Path(f"/proc/{pid}/task/{pid}/children")
        os.kill(pid, signal.SIGSTOP)  # first: then no more children come
        processes = [pid, *map(int, children.read_text().split())]
        for each in processes:
            os.kill(each, signal.SIGSTOP)
        try:
            yield
        finally:
            for each in processes:
                os.kill(each, signal.SIGCONT)

    @contextmanager
    def read_only(self):
        """As after a failover to a standby: connections are lost, new ones take no writes."""
        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'chaos'"
        self._do("ALTER DATABASE chaos SET default_transaction_read_only = on", ended)
        try:
            yield
        finally:
            self._do("ALTER DATABASE chaos RESET default_transaction_read_only", ended)

    @contextmanager
    def held_before_commit(self):
        """No transaction of the service gets as far as its totals."""
        with psycopg.connect(self.url) as conn:
            conn.execute("LOCK TABLE call_total")
            yield

    @contextmanager
    def held_in_commit(self):
        """A COMMIT is durable, but not answered: it waits for a standby that does not come."""
        self._do("ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()")
        try:
            yield
        finally:
            self._do("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")

    def wait_for_backend(self, event):
        """Until a transaction waits for `event`."""
        waiting = "SELECT FROM pg_stat_activity WHERE datname = 'chaos' AND wait_event = %s"
        until(lambda: self.rows(waiting, event))

    def wait_for_no_backend(self):
        """Until the transactions of a killed service have ended; those of idle replicas have none."""
        busy = """SELECT FROM pg_stat_activity
            WHERE datname = 'chaos' AND xact_start IS NOT NULL AND pid <> pg_backend_pid()"""
        until(lambda: not self.rows(busy))
