"""The migrations make exactly the tables of `store.models`, in order, once, or refuse in a sentence."""

import re
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from toolfault.store import schema
from toolfault.store.errors import DatabaseUnreachableError, SchemaError
from toolfault.store.models import METADATA, PARTITION_NAME

_COLUMNS = """
SELECT c.relname, c.relkind, c.reloptions, pg_get_partkeydef(c.oid), a.attnum, a.attname,
       format_type(a.atttypid, a.atttypmod), a.attnotnull, l.collname, pg_get_expr(d.adbin, d.adrelid)
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
  LEFT JOIN pg_collation l ON l.oid = a.attcollation
  LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
 WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND c.relname <> 'alembic_version'
 ORDER BY c.relname, a.attnum"""
_INDEXES = """SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename <> 'alembic_version'
 ORDER BY indexdef"""
_CONSTRAINTS = """SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
 WHERE connamespace = 'public'::regnamespace AND conrelid <> 0 AND conrelid::regclass::text <> 'alembic_version'
 ORDER BY 1, 2"""


def _engine(url):
    return create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url))


def _catalogue(url):
    with psycopg.connect(url) as conn:
        return [conn.execute(query).fetchall() for query in (_COLUMNS, _INDEXES, _CONSTRAINTS)]


@pytest.fixture
def modelled_url(postgres):
    with psycopg.connect(postgres, autocommit=True) as conn:
        conn.execute("CREATE DATABASE modelled")
    url = f"{postgres.rpartition('/')[0]}/modelled"
    engine = _engine(url)
    METADATA.create_all(engine)
    engine.dispose()
    yield url
    with psycopg.connect(postgres, autocommit=True) as conn:
        conn.execute("DROP DATABASE modelled WITH (FORCE)")


def test_alembic_finds_no_difference_between_migrations_and_models(database_url):
    engine = _engine(database_url)
    with engine.connect() as conn:
        ours = {
            "include_name": lambda name, kind, _: (
                kind != "table" or not re.search(PARTITION_NAME, name)
            )
        }
        assert compare_metadata(MigrationContext.configure(conn, opts=ours), METADATA) == []
    engine.dispose()


def test_columns_indexes_and_constraints_are_those_of_the_models(empty_database_url, modelled_url):
    schema.upgrade(empty_database_url)
    for migrated, modelled in zip(
        _catalogue(empty_database_url), _catalogue(modelled_url), strict=True
    ):
        assert migrated == modelled


def test_there_is_one_head():
    assert ScriptDirectory.from_config(schema._config()).get_heads() == [schema.head()]


def test_an_upgrade_leads_from_nothing_to_the_head_and_may_be_repeated(empty_database_url):
    assert schema.current(empty_database_url) is None
    schema.upgrade(empty_database_url)
    schema.upgrade(empty_database_url)
    assert schema.current(empty_database_url) == schema.head()
    schema.require_current(empty_database_url)


def test_two_upgrades_at_once_make_one_schema(empty_database_url):
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(schema.upgrade, [empty_database_url] * 2))
    schema.require_current(empty_database_url)


def test_a_second_process_waits_for_the_upgrade_of_the_first(empty_database_url):
    """The lock inside the database, which replicas share, and not that of this process."""
    with psycopg.connect(empty_database_url) as other, ThreadPoolExecutor(1) as pool:
        other.execute("SELECT pg_advisory_xact_lock(%s)", [schema.locks.UPGRADE])
        upgrade = pool.submit(schema.upgrade, empty_database_url)
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        while other.execute(waiting).fetchone() == (0,):
            assert not upgrade.done()
        assert schema.current(empty_database_url) is None
        other.rollback()
        upgrade.result()
    schema.require_current(empty_database_url)


def test_a_database_without_tables_is_refused_with_the_command(empty_database_url):
    with pytest.raises(SchemaError, match=r"no toolfault tables yet\. Run: toolfault db upgrade"):
        schema.require_current(empty_database_url)


def test_an_old_schema_is_refused_with_the_command(database_url, monkeypatch):
    older = schema.head()
    monkeypatch.setattr(schema, "_revisions", lambda: ["9999", older])
    with pytest.raises(
        SchemaError,
        match=rf"has schema {older}, this toolfault needs 9999\. Run: toolfault db upgrade",
    ):
        schema.require_current(database_url)


def test_a_schema_of_a_newer_toolfault_is_refused_by_start_and_by_upgrade(database_url):
    with psycopg.connect(database_url) as conn:
        conn.execute("UPDATE alembic_version SET version_num = '9999'")
    for refused in (schema.require_current, schema.upgrade):
        with pytest.raises(
            SchemaError,
            match="schema 9999, which this toolfault does not know: a newer one made it",
        ):
            refused(database_url)


def test_an_upgrade_that_fails_leaves_nothing(empty_database_url):
    with psycopg.connect(empty_database_url) as conn:
        conn.execute("CREATE TABLE incident (a int)")
    with pytest.raises(Exception, match="already exists"):
        schema.upgrade(empty_database_url)
    with psycopg.connect(empty_database_url) as conn:
        assert conn.execute(
            "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
        ).fetchone() == (1,)


def test_an_unreachable_database_gets_a_sentence_without_the_password():
    secret = "hunter" + "2"
    with pytest.raises(
        DatabaseUnreachableError, match=r"'shop' at 127\.0\.0\.1:1 cannot be reached"
    ) as caught:
        schema.upgrade(f"postgresql://me:{secret}@127.0.0.1:1/shop")
    assert secret not in str(caught.value)


def test_an_unreadable_address_gets_a_sentence_without_the_password():
    secret = "hunter" + "2"
    with pytest.raises(
        DatabaseUnreachableError, match="looks like postgresql://user:password@host"
    ) as caught:
        schema.current(f"mysql://me:{secret}@127.0.0.1/shop")
    assert secret not in str(caught.value)
