"""A real PostgreSQL for every test that wants one, and a clean environment for all."""

import os
import signal
import sys
import tempfile
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import psycopg
import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from toolfault import budget
from toolfault.store import partitions, schema
from toolfault.store.embedded import EmbeddedPostgres
from toolfault.store.models import METADATA
from toolfault.telemetry import events, spans

for name in [name for name in os.environ if name.startswith(("TOOLFAULT_", "OTEL_"))]:
    del os.environ[name]

# A shell that starts the tests in the background has them, and what they start, ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_terminal_summary(terminalreporter):
    """Times that a test shows beside its result."""
    for report in terminalreporter.getreports("passed"):
        for what, seconds in report.user_properties:
            name = report.nodeid.partition("::")[2]
            terminalreporter.write_line(f"{name}: {what} after {seconds:.1f} s")


@pytest.fixture(scope="session")
def postgres():
    """Address of an embedded server; one for each worker of xdist."""
    with (
        tempfile.TemporaryDirectory(prefix="toolfault-") as folder,
        EmbeddedPostgres(Path(folder)) as url,
    ):
        with psycopg.connect(url, autocommit=True) as conn:
            # Nobody needs these data after a power cut.
            conn.execute("ALTER SYSTEM SET fsync = off")
            conn.execute("ALTER SYSTEM SET full_page_writes = off")
            conn.execute("SELECT pg_reload_conf()")
        yield url


@pytest.fixture(scope="session")
def _databases(postgres):
    return Databases(postgres)


@pytest.fixture
def database_url(_databases):
    """Address of a database of one's own: all tables, partitions from a week ago on, no rows."""
    yield _databases.migrated()
    _databases.clean()


@pytest.fixture(scope="module")
def new_database(_databases):
    """Makes further databases with all tables and no row, for one file of tests."""
    urls = []

    def new():
        urls.append(_databases.copy())
        return urls[-1]

    yield new
    for url in urls:
        _databases.drop(url)


@pytest.fixture
def empty_database_url(_databases):
    """Address of a database without tables."""
    url = _databases.create()
    yield url
    _databases.drop(url)


@pytest.fixture
def connection(database_url):
    with psycopg.connect(database_url) as conn:
        yield conn


class Databases:
    """Databases of the embedded server.

    A migrated one is used again, emptied, unless a test changed its tables: a new one takes a second.
    """

    _CHANGES = """SELECT (SELECT sum(oid::bigint) FROM pg_class), (SELECT count(*) FROM pg_attribute),
        (SELECT count(*) FROM pg_constraint), (SELECT version_num FROM alembic_version)"""
    _OTHERS = """SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()"""

    def __init__(self, server):
        self._server = server
        self._numbers = count()
        self._template = self._migrated = self._tables = None

    def create(self, origin=""):
        name = f"test_{next(self._numbers)}"
        with psycopg.connect(self._server, autocommit=True) as conn:
            conn.execute(f"CREATE DATABASE {name} {origin}")
        return f"{self._server.rpartition('/')[0]}/{name}"

    def drop(self, url):
        with psycopg.connect(self._server, autocommit=True) as conn:
            conn.execute(f"DROP DATABASE {url.rpartition('/')[2]} WITH (FORCE)")

    def copy(self):
        if self._template is None:
            self._template = self.create()
            schema.upgrade(self._template)
            with psycopg.connect(self._template) as conn:
                partitions.maintain(conn, datetime.now(UTC), partitions.Retention(days=7))
        template = self._template.rpartition("/")[2]
        return self.create(f"TEMPLATE {template} STRATEGY file_copy")

    def migrated(self):
        if self._migrated is None:
            self._migrated = self.copy()
            with psycopg.connect(self._migrated) as conn:
                self._tables = conn.execute(self._CHANGES).fetchone()
        return self._migrated

    def clean(self):
        with psycopg.connect(self._migrated, autocommit=True) as conn:
            while conn.execute(self._OTHERS).fetchone() != (0,):
                pass
            if conn.execute(self._CHANGES).fetchone() == self._tables:
                for table in METADATA.tables:
                    conn.execute(f"DELETE FROM {table}")  # noqa: S608
                return
        self.drop(self._migrated)
        self._migrated = None


@pytest.fixture(autouse=True)
def _fresh_budget():
    """Calls outside of a run share one count per process; no test begins with another's."""
    yield
    budget._in_process.clear()


@pytest.fixture
def exported():
    """Everything the library exports while the test runs: `.spans` and `.events`, as SDK objects."""
    spans_out, events_out = InMemorySpanExporter(), InMemoryLogRecordExporter()
    tracer_provider, logger_provider = TracerProvider(), LoggerProvider()
    tracer_provider.add_span_processor(SimpleSpanProcessor(spans_out))
    logger_provider.add_log_record_processor(SimpleLogRecordProcessor(events_out))
    spans.use_provider(tracer_provider)
    events.use_provider(logger_provider)
    yield Exported(spans_out, events_out, tracer_provider, logger_provider)
    spans.use_provider(None)
    events.use_provider(None)
    tracer_provider.shutdown()
    logger_provider.shutdown()


@pytest.fixture
def toolfault(capsys, monkeypatch):
    """Runs the command in this process: exit code, output, errors."""

    from toolfault.cli import app as commands  # noqa: PLC0415 - takes a second

    def run(*arguments, **variables):
        monkeypatch.setattr(sys, "argv", ["toolfault", *arguments])
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit) as ended:
            commands.run()
        out, err = capsys.readouterr()
        return ended.value.code or 0, out, err

    return run


class Exported:
    def __init__(self, spans_out, events_out, tracer_provider, logger_provider):
        self._spans, self._events = spans_out, events_out
        self.tracer_provider, self.logger_provider = tracer_provider, logger_provider

    @property
    def spans(self):
        return self._spans.get_finished_spans()

    @property
    def events(self):
        return [data.log_record for data in self._events.get_finished_logs()]

    def named(self, name):
        return [event for event in self.events if event.event_name == name]

    def everything(self):
        """All that left, as the text an eavesdropper would search."""
        return "\n".join(
            [span.to_json() for span in self.spans] + [repr(vars(e)) for e in self.events]
        )
