"""A real PostgreSQL for every test that wants one, and a clean environment for all."""

import os
import tempfile
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import psycopg
import pytest

from toolfault.store import partitions, schema
from toolfault.store.embedded import EmbeddedPostgres

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
        yield url


@pytest.fixture(scope="session")
def _template(postgres):
    with psycopg.connect(postgres, autocommit=True) as conn:
        conn.execute(f"CREATE DATABASE {_TEMPLATE}")
    url = _named(postgres, _TEMPLATE)
    schema.upgrade(url)
    with psycopg.connect(url) as conn:
        partitions.maintain(conn, datetime.now(UTC))
    return _TEMPLATE


@pytest.fixture
def database_url(postgres, _template):
    """Address of a database of one's own: all tables, partitions around today, no rows."""
    yield from _fresh(postgres, f"TEMPLATE {_template}")


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
