"""A backup made and restored as docs/deploy.md says, with PostgreSQL's own programs."""

import json
import subprocess

import httpx
import psycopg
import pytest
from tests.end_to_end.harness import running
from tests.store.conftest import Samples

from toolfault.store.binaries import find_programs
from toolfault.store.write import Writer


@pytest.fixture
def postgres_program(tmp_path):
    """Runs a program that comes with the embedded PostgreSQL."""
    programs = find_programs(None, tmp_path / "no cluster")

    def run(name, *arguments):
        done = subprocess.run(
            [programs / name, *arguments], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")

    return run


@pytest.fixture
def restored(postgres_program, database_url, empty_database_url, tmp_path):
    """Stores calls, and a copy of the database as it was then: the calls and the copy's address."""
    make = Samples(9)
    calls = [make.failed(), make.ok(), make.ok()]
    with psycopg.connect(database_url) as conn:
        Writer(conn, 0).load(calls, [], [make.log(calls[0])])
    dump = str(tmp_path / "toolfault.dump")
    postgres_program("pg_dump", "--format=custom", f"--file={dump}", database_url)
    postgres_program("pg_restore", "--exit-on-error", f"--dbname={empty_database_url}", dump)
    return calls, empty_database_url


def _look_up(toolfault, url, reference):
    with running(TOOLFAULT_DATABASE_URL=url) as addresses:
        code, out, _ = toolfault("lookup", reference, "--json", TOOLFAULT_URL=addresses["web"])
        totals = httpx.get(f"{addresses['web']}/metrics/tools").text
    assert code == 0
    counted = [
        line for line in totals.splitlines() if line.startswith("toolfault_tool_calls_total")
    ]
    return json.loads(out)["matches"], sum(float(line.split()[1]) for line in counted)


def test_a_restored_database_knows_its_references_and_its_totals_start_anew(restored, toolfault):
    calls, url = restored
    told = toolfault("db", "rebase", TOOLFAULT_DATABASE_URL=url)
    # calls that were ok, calls that failed, and a new group of errors
    assert told == (0, "3 totals start at 0 again.\n", "")

    (match,), total = _look_up(toolfault, url, calls[0].reference_id)

    assert (match["tool"], match["outcome"], match["effect"]) == (
        "book_meeting",
        "failed",
        "unknown",
    )
    assert len(match["exceptions"]) == 1
    assert total == 0


def test_a_restored_database_is_complete(restored, database_url, toolfault):
    _, url = restored
    assert toolfault("db", "current", TOOLFAULT_DATABASE_URL=url)[1].endswith(
        "as this version needs.\n"
    )
    objects = """SELECT count(*), count(*) FILTER (WHERE relispartition), sum(relnatts)
        FROM pg_class WHERE relnamespace = 'public'::regnamespace"""
    with psycopg.connect(database_url) as before, psycopg.connect(url) as after:
        assert after.execute(objects).fetchone() == before.execute(objects).fetchone()
        after.execute("SET ROLE toolfault_read")
        assert after.execute("SELECT count(*) FROM tool_call").fetchone() == (1,)
