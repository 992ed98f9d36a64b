"""A real PostgreSQL for every test that wants one, and a clean environment for all."""

import os
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
from toolfault.telemetry import events, spans

for name in [name for name in os.environ if name.startswith(("TOOLFAULT_", "OTEL_"))]:
    del os.environ[name]

_TEMPLATE = "migrated"
_numbers = count()


@pytest.fixture(scope="session")
def postgres():
    """Address of an embedded server; one for each worker of xdist."""
    with (
        tempfile.TemporaryDirectory(prefix="toolfault-") as folder,
        EmbeddedPostgres(Path(folder)) as url,
    ):
        with psycopg.connect(
            url, autocommit=True
        ) as conn:  # nobody needs these data after a power cut
            conn.execute("ALTER SYSTEM SET fsync = off")
            conn.execute("ALTER SYSTEM SET full_page_writes = off")
            conn.execute("SELECT pg_reload_conf()")
        yield url


@pytest.fixture(scope="session")
def _template(postgres):
    with psycopg.connect(postgres, autocommit=True) as conn:
        conn.execute(f"CREATE DATABASE {_TEMPLATE}")
    url = _named(postgres, _TEMPLATE)
    schema.upgrade(url)
    with psycopg.connect(url) as conn:
        partitions.maintain(conn, datetime.now(UTC), partitions.Retention(days=7))
    return _TEMPLATE


@pytest.fixture
def database_url(postgres, _template):
    """Address of a database of one's own: all tables, partitions from a week ago on, no rows."""
    yield from _fresh(postgres, f"TEMPLATE {_template} STRATEGY file_copy")


@pytest.fixture
def empty_database_url(postgres):
    """Address of a database without tables."""
    yield from _fresh(postgres, "")


@pytest.fixture
def connection(database_url):
    with psycopg.connect(database_url) as conn:
        yield conn


def _fresh(postgres, origin):
    name = f"test_{next(_numbers)}"
    with psycopg.connect(postgres, autocommit=True) as conn:
        conn.execute(f"CREATE DATABASE {name} {origin}")
    yield _named(postgres, name)
    with psycopg.connect(postgres, autocommit=True) as conn:
        conn.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _named(url, name):
    return f"{url.rpartition('/')[0]}/{name}"


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
