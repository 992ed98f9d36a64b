"""The engine that look-ups read with, when the database went away in between."""

import psycopg
import pytest

from toolfault.store.queries import base
from toolfault.store.queries.base import open_engine, ping

_END_ALL = """SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()"""


@pytest.fixture
def engine(database_url):
    engine = open_engine(database_url, connections=1)
    yield engine
    engine.dispose()


def _ask(engine):
    with engine.connect() as conn:
        ping(conn)


def test_a_connection_that_rested_is_asked_before_it_is_used(engine, connection, monkeypatch):
    monkeypatch.setattr(base, "_FRESH_SECONDS", 0.0)
    _ask(engine)
    connection.execute(_END_ALL)

    _ask(engine)


def test_a_connection_that_broke_under_a_statement_is_not_used_again(
    engine, connection, monkeypatch
):
    monkeypatch.setattr(base, "_FRESH_SECONDS", 3600.0)
    _ask(engine)
    connection.execute(_END_ALL)
    with pytest.raises(psycopg.OperationalError):
        _ask(engine)

    _ask(engine)


def test_a_look_up_after_another_asks_no_more_than_it_needs(engine, monkeypatch):
    monkeypatch.setattr(base, "_FRESH_SECONDS", 3600.0)
    _ask(engine)
    asked = []
    monkeypatch.setattr(psycopg.Connection, "execute", lambda _, *args, **__: asked.append(args))

    _ask(engine)

    assert [statement for statement, *_ in asked] == ["SELECT 1"]
