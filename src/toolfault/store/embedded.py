"""A PostgreSQL of our own in a folder, for everyone who has set no TOOLFAULT_DATABASE_URL.

It listens on 127.0.0.1 only and asks for a password that only the folder's owner can read, because
other users of the machine reach loopback too. Start and stop go by process id.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

from toolfault.store.binaries import account, find_programs, program_options
from toolfault.store.errors import EmbeddedError
from toolfault.store.watching import ends_with_us

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

_NAME = "toolfault"  # of the superuser and of the database
_LINE_OF_PORT, _LINE_OF_STATUS = 3, 7  # in postmaster.pid
_START_SECONDS = 120  # recovery after a crash replays at most max_wal_size
_STOP_SECONDS = 30
_PAUSE_SECONDS = 0.5  # processes of a server that was killed may still hold its shared memory
_TRIES = 3  # a port can be taken between finding it free and listening on it
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "100",
    "max_locks_per_transaction": "256",  # a statement over all partitions locks each with its indexes
    "shared_buffers": "256MB",
    "max_wal_size": "2GB",
    "jit": "off",  # costs more than it saves on look-ups
    "timezone": "UTC",
    "log_checkpoints": "off",
}


class EmbeddedPostgres:
    """One server in one folder; a context manager that gives the database URL.

    The folder gets `postgres/` (the cluster), `password`, `postgres.log` and `lock`.
    """

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir.absolute()
        self._cluster = self._data_dir / "postgres"
        self._stack = contextlib.ExitStack()
        self._watching = contextlib.ExitStack()
        self._server: subprocess.Popen[bytes] | None = None
        self._port = 0

    def start(self) -> str:
        """Starts the server, making the cluster on first use, and returns the database URL.

        Raises:
            EmbeddedError: the folder or the wheel cannot be used, or another toolfault uses it.
        """
        with contextlib.ExitStack() as undo:
            undo.callback(self.stop)
            self._lock()
            self._runs_as = account(self._cluster)
            self._programs = find_programs(self._runs_as, self._cluster)
            self._options = program_options(self._runs_as)
            try:
                if not self._cluster.exists():
                    self._initialise()
                self._end_leftover()
                url = self._run()
            except OSError as error:
                raise self._not_usable(Path(error.filename or self._data_dir), error) from None
            undo.pop_all()
        return url

    def stop(self) -> None:
        """Ends the server and waits for it. Harmless when it does not run."""
        server, self._server = self._server, None
        if server is not None and server.poll() is None:
            server.send_signal(signal.SIGINT)  # "fast": clients are disconnected
            try:
                server.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                server.send_signal(signal.SIGQUIT)  # "immediate": recovers at the next start
                server.wait()
        self._watching.close()
        self._stack.close()

    def revive(self) -> bool:
        """Starts the server again, on its port, if it has died; says whether it had."""
        if self._server is None or self._server.poll() is None:
            return False
        for _ in range(_TRIES):
            if self._launch(self._port):
                return True
            time.sleep(_PAUSE_SECONDS)
        raise self._not_started()

    def __enter__(self) -> str:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _lock(self) -> None:
        """One toolfault per folder; the lock goes with the process, whatever its end."""
        try:
            self._data_dir.mkdir(parents=True, exist_ok=True)
            lock = self._stack.enter_context((self._data_dir / "lock").open("a"))
        except OSError as error:
            raise self._not_usable(self._data_dir, error) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise EmbeddedError(
                f"Another toolfault already runs on {self._data_dir}. Stop it, or choose another "
                "folder with --data-dir or TOOLFAULT_DATA_DIR."
            ) from None

    def _not_usable(self, path: Path, error: OSError) -> EmbeddedError:
        inside = "" if path == self._data_dir else f": {path}"
        return EmbeddedError(
            f"The data folder {self._data_dir} cannot be written ({error.strerror}{inside}). "
            "Choose another one with --data-dir or TOOLFAULT_DATA_DIR."
        )

    def _initialise(self) -> None:
        """Makes the cluster under another name first: a half-made one must never be started."""
        made = self._data_dir / "postgres.new"
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(mode=0o700)
        password = self._data_dir / "password"
        password.unlink(missing_ok=True)
        with os.fdopen(os.open(password, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_hex(32))
        self._give(made)
        self._give(password)
        with self._reachable(made) as (folder, shared), self._reachable(password) as (file, also):
            run = subprocess.run(
                [
                    self._programs / "initdb", f"--pgdata={folder}", f"--pwfile={file}", f"--username={_NAME}",
                    "--auth=scram-sha-256", "--encoding=UTF8", "--locale-provider=builtin",
                    "--builtin-locale=C.UTF-8", "--locale=C", "--no-sync",
                ],
                capture_output=True, text=True, check=False, pass_fds=[*shared, *also], **self._options,
            )  # fmt: skip
        if run.returncode != 0:
            raise EmbeddedError(
                f"PostgreSQL could not be set up in {self._cluster}: {run.stderr.strip()}"
            )
        made.rename(self._cluster)

    def _give(self, path: Path) -> None:
        if self._runs_as is not None:
            os.chown(path, self._runs_as.uid, self._runs_as.gid)

    @contextlib.contextmanager
    def _reachable(self, path: Path) -> Iterator[tuple[str, tuple[int, ...]]]:
        """A name by which the server's account gets at `path`, and the descriptors it needs for that.

        Root's folders are closed to an unprivileged account, and their permissions are not ours to
        change. An inherited descriptor leads past them.
        """
        if self._runs_as is None or sys.platform != "linux":
            yield str(path), ()
            return
        descriptor = os.open(path, os.O_RDONLY)
        try:
            yield f"/proc/self/fd/{descriptor}", (descriptor,)
        finally:
            os.close(descriptor)

    def _end_leftover(self) -> None:
        """Stops the server of a toolfault that was killed; the lock says that nobody uses it."""
        pid = _noted_pid(self._cluster)
        if pid is None or not _is_alive(pid):
            return
        if not _works_in(pid, self._cluster):
            # The machine was restarted and the id is somebody else's; PostgreSQL would refuse.
            (self._cluster / "postmaster.pid").unlink()
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGINT)
        _wait_until(lambda: not _works_in(pid, self._cluster), _STOP_SECONDS)

    def _run(self) -> str:
        for _ in range(_TRIES):
            port = free_port()
            if self._launch(port):
                self._port = port
                return self._ensure_database(port)
            time.sleep(_PAUSE_SECONDS)
        raise self._not_started()

    def _not_started(self) -> EmbeddedError:
        return EmbeddedError(
            f"PostgreSQL did not start; its log is {self._data_dir / 'postgres.log'}."
        )

    def _launch(self, port: int) -> bool:
        """Whether the server came up."""
        settings = [
            f"--{name}={value}" for name, value in (_SETTINGS | {"port": str(port)}).items()
        ]
        log = self._data_dir / "postgres.log"
        with self._reachable(self._cluster) as (folder, shared), log.open("wb") as output:
            self._server = server = subprocess.Popen(
                [self._programs / "postgres", "-D", folder, *settings],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, pass_fds=shared, **self._options,
            )  # fmt: skip
        self._watching.close()
        self._watching.enter_context(ends_with_us(server.pid, **self._options))
        _wait_until(lambda: server.poll() is not None or self._is_ready(server.pid), _START_SECONDS)
        return self._is_ready(server.pid)

    def _is_ready(self, pid: int) -> bool:
        lines = _pid_file(self._cluster)
        return (
            len(lines) > _LINE_OF_STATUS
            and lines[0] == str(pid)
            and lines[_LINE_OF_STATUS] == "ready"
        )

    def _ensure_database(self, port: int) -> str:
        password = (self._data_dir / "password").read_text()
        server = f"postgresql://{_NAME}:{password}@127.0.0.1:{port}"
        with psycopg.connect(f"{server}/postgres", autocommit=True) as conn:
            if not conn.execute("SELECT FROM pg_database WHERE datname = %s", [_NAME]).rowcount:
                conn.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(_NAME)))
        return f"{server}/{_NAME}"


def _pid_file(cluster: Path) -> list[str]:
    try:
        text = (cluster / "postmaster.pid").read_text()
    except FileNotFoundError:
        return []
    return [line.strip() for line in text.splitlines()]


def _noted_pid(cluster: Path) -> int | None:
    lines = _pid_file(cluster)
    return int(lines[0]) if lines and lines[0].isdecimal() else None


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _works_in(pid: int, cluster: Path) -> bool:
    """Whether this is the server of the cluster: a server's working directory is its cluster."""
    if not Path("/proc/self").exists():
        return _is_alive(pid)
    try:
        return Path(f"/proc/{pid}/cwd").samefile(cluster)
    except OSError:  # gone, or another user's
        return False


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until(done: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not done() and time.monotonic() < deadline:
        time.sleep(0.02)
