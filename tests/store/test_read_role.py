"""The role that dashboards read with sees what they show, and nothing else."""

import psycopg
import pytest
from alembic.script import ScriptDirectory
from psycopg import errors

from toolfault.store import schema
from toolfault.store.errors import StoreError
from toolfault.store.read_role import let_in

READABLE = (
    "tool_call",
    "tool_call_all",
    "run_event",
    "error_group",
    "error_group_tally",
    "tool_catalog",
    "label",
    "incident",
)


@pytest.fixture
def reader(connection):
    connection.execute("SET ROLE toolfault_read")
    return connection


@pytest.mark.parametrize("table", READABLE)
def test_it_reads_what_dashboards_show(reader, table):
    assert reader.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)  # noqa: S608


@pytest.mark.parametrize("table", ["api_token", "lookup_audit", "log_record", "dead_letter"])
def test_it_reads_neither_tokens_nor_look_ups_nor_exception_details(reader, table):
    with pytest.raises(errors.InsufficientPrivilege):
        reader.execute(f"SELECT count(*) FROM {table}")  # noqa: S608


def test_it_changes_nothing(reader):
    with pytest.raises(errors.InsufficientPrivilege):
        reader.execute("DELETE FROM error_group")


def test_it_cannot_log_in_until_somebody_lets_it(connection):
    rights = (
        "SELECT rolcanlogin, rolsuper, rolcreaterole, rolcreatedb FROM pg_roles WHERE rolname = %s"
    )
    assert connection.execute(rights, ["toolfault_read"]).fetchone() == (False, False, False, False)


def test_its_password_is_not_told_to_the_server(connection, tmp_path):
    password = "visibly-" + "fake-password"
    with (tmp_path / "messages").open("wb") as messages:
        connection.pgconn.trace(messages.fileno())
        let_in(connection, password)
        connection.pgconn.untrace()
    connection.execute("ALTER ROLE toolfault_read NOLOGIN PASSWORD NULL")
    connection.commit()

    told = (tmp_path / "messages").read_text()
    assert "ALTER ROLE" in told
    assert "SCRAM-SHA-256$" in told
    assert password not in told


def test_who_may_not_let_it_in_is_told_what_to_do(connection):
    connection.execute("CREATE ROLE powerless; SET ROLE powerless")
    with pytest.raises(StoreError, match="Let somebody who may create roles run: ALTER ROLE"):
        let_in(connection, "visibly-fake")
    connection.rollback()


def test_who_may_not_create_roles_still_gets_the_schema_and_is_told(postgres):
    """The role of this server's other databases is out of sight for as long as the test runs."""
    role = ScriptDirectory.from_config(schema._config()).get_revision("0002")
    with psycopg.connect(postgres, autocommit=True) as admin:
        known = admin.execute("SELECT 1 FROM pg_roles WHERE rolname = 'toolfault_read'").fetchone()
        if known:
            admin.execute("ALTER ROLE toolfault_read RENAME TO set_aside")
        admin.execute("CREATE ROLE plain LOGIN")
        admin.execute("CREATE DATABASE owned_by_plain OWNER plain")
        try:
            url = f"{postgres.rpartition('/')[0]}/owned_by_plain?options=-crole%3Dplain"
            schema.upgrade(url)
            schema.require_current(url)
            with psycopg.connect(url) as conn:
                told = []
                conn.add_notice_handler(lambda notice: told.append(notice.message_primary))
                conn.execute(role.module._ROLE)
            assert "toolfault_read, which dashboards read with, was not made" in told[0]
            made = "SELECT count(*) FROM pg_roles WHERE rolname = 'toolfault_read'"
            assert admin.execute(made).fetchone() == (0,)
        finally:
            admin.execute("DROP DATABASE owned_by_plain WITH (FORCE)")
            admin.execute("DROP ROLE plain")
            if known:
                admin.execute("ALTER ROLE set_aside RENAME TO toolfault_read")
