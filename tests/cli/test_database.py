"""Commands that work on the database: the read role's password, tokens kept in files."""

import json
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from toolfault import settings
from toolfault.cli import database
from toolfault.store import schema
from toolfault.store.queries.base import open_engine
from toolfault.store.tokens import Role, verify_token

PASSWORD = "visibly-" + "fake-password"


@pytest.fixture
def reader(database_url):
    """Logs the role in; whatever a test lets it do is taken back."""

    def log_in(password):
        with psycopg.connect(database_url, user="toolfault_read", password=password) as conn:
            return conn.execute("SELECT current_user").fetchone()[0]

    yield log_in
    with psycopg.connect(database_url) as conn:
        conn.execute("ALTER ROLE toolfault_read NOLOGIN PASSWORD NULL")


def test_the_read_role_logs_in_with_the_password_of_the_file_and_no_other(
    toolfault, database_url, reader, tmp_path
):
    file = tmp_path / "password"
    file.write_text(f"{PASSWORD}\n")
    told = toolfault(
        "db", "upgrade", "--read-password-file", str(file), TOOLFAULT_DATABASE_URL=database_url
    )

    assert told == (0, f"The schema is at {schema.head()}; toolfault_read may log in.\n", "")
    assert reader(PASSWORD) == "toolfault_read"
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        reader("another")


@pytest.mark.parametrize(
    ("content", "told"),
    [(None, "cannot be read"), (" \n", "is empty. Write a password into it.")],
)
def test_a_password_file_that_cannot_be_used_is_told_before_anything_is_done(
    toolfault, empty_database_url, tmp_path, content, told
):
    file = tmp_path / "password"
    if content is not None:
        file.write_text(content)
    code, out, err = toolfault(
        "db", "upgrade", "--read-password-file", str(file), TOOLFAULT_DATABASE_URL=empty_database_url
    )  # fmt: skip

    assert (code, out) == (2, "")
    assert f"--read-password-file: {file} {told}" in err
    with psycopg.connect(empty_database_url) as conn:
        assert conn.execute("SELECT to_regclass('tool_call')").fetchone() == (None,)


def _unwrapped(told):
    """What was printed, without blanks: a terminal breaks lines anywhere."""
    return "".join(told[1].split())


def _secret_in(file, database_url):
    engine = open_engine(database_url)
    try:
        return verify_token(engine, file.read_text().strip())
    finally:
        engine.dispose()


def test_a_token_in_a_file_is_kept_until_it_is_to_be_replaced(toolfault, database_url, tmp_path):
    file = tmp_path / "ingest"
    create = ("token", "create", "collector", "--role", "ingest", "--secret-file", str(file))
    here = {"TOOLFAULT_DATABASE_URL": database_url}
    assert _unwrapped(toolfault(*create, **here)) == f"Thetokencollectorisin{file}."
    first = file.read_text()
    assert _unwrapped(toolfault(*create)) == f"{file}hasatokenalready;itiskept."
    assert file.read_text() == first
    code, out, _ = toolfault(*create, "--replace", "--json")

    assert code == 0
    assert "secret" not in json.loads(out)
    assert file.read_text() != first
    assert _secret_in(file, database_url).roles == [Role.INGEST]
    assert [each.name for each in tmp_path.iterdir()] == ["ingest"]


def test_two_runs_at_once_leave_one_whole_token_in_the_file(database_url, tmp_path):
    file, chosen = tmp_path / "ingest", settings.read({"TOOLFAULT_DATABASE_URL": database_url})
    with ThreadPoolExecutor(2) as pool:
        runs = [
            pool.submit(database.replace_token, chosen, "collector", ["ingest"], None, file)
            for _ in range(2)
        ]
    ids = {run.result()[0]["id"] for run in runs}

    assert str(_secret_in(file, database_url).id) in ids
    assert [each.name for each in tmp_path.iterdir()] == ["ingest"]


def test_the_id_of_a_token_can_be_copied_from_a_narrow_terminal(toolfault, database_url):
    here = {"TOOLFAULT_DATABASE_URL": database_url, "COLUMNS": "80"}
    _, made, _ = toolfault("token", "create", "support-desk", "--role", "support", "--json", **here)
    code, out, _ = toolfault("token", "list", **here)

    assert code == 0
    assert json.loads(made)["id"] in out


def test_a_token_cannot_be_replaced_without_saying_where(toolfault, database_url):
    told = toolfault(
        "token", "create", "x", "--role", "ingest", "--replace", TOOLFAULT_DATABASE_URL=database_url
    )

    assert told == (
        2,
        "",
        "toolfault: --replace needs the file: give --secret-file FILE as well.\n",
    )
