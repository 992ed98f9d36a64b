"""The disk under the database is full: told within a second, and over as soon as there is room."""

import errno
import os
import subprocess
import time
from contextlib import contextmanager, suppress
from types import SimpleNamespace

import httpx
import pytest
from tests.chaos.database import until
from tests.chaos.ledger import AGAIN, TAKEN, Grpc, Http, Ledger, spans
from tests.end_to_end.harness import running

pytestmark = pytest.mark.timeout(180)
_MIB = 1024 * 1024


@pytest.fixture
def disk(tmp_path):
    """A file system of 256 MiB; mounting takes root, or sudo without a password as in CI."""
    privileged = [] if os.geteuid() == 0 else ["sudo", "-n"]
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256m,mode=0777", "toolfault-test", place]
    subprocess.run([*privileged, *mount], check=True)
    yield place
    subprocess.run([*privileged, "umount", place], check=True)


@contextmanager
def full(disk):
    """Not a byte is left while this lasts."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (_MIB, 4096):
            with suppress(OSError):
                while True:
                    file.write(bytes(size))
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        (disk / "one more").write_bytes(bytes(4096))
    (disk / "one more").unlink()
    try:
        yield
    finally:
        filler.unlink()


def test_a_full_disk_is_told_at_once_and_nothing_is_lost(disk):
    ledger = Ledger()  # another database, another ledger
    with running("--data-dir", disk / "data") as addresses:
        service = SimpleNamespace(http=addresses["http"], grpc=addresses["grpc"].split("://")[-1])
        ways = [Http(service), Grpc(service)]
        for way in ways:
            assert ledger.send(spans(ledger.take(50)), way) == TAKEN
        with full(disk):
            late = [_refused(ledger, way) for way in ways]
            assert set(+ledger.refusals) == {503, "UNAVAILABLE"}
            for _ in range(20):  # red, and it stays red: a full disk still takes connections
                red = httpx.get(f"{addresses['web']}/readyz")
                assert (red.status_code, "disk is full" in red.text) == (503, True), red.text
                time.sleep(0.1)
        until(lambda: httpx.get(f"{addresses['web']}/readyz").status_code == 200)
        for export in late:
            ledger.deliver(export, ways)
        assert not ledger.wrong
        assert ledger.acknowledged == ledger.sent
        assert _counted(addresses) == len(ledger.sent)
        for way in ways:
            way.close()


def _refused(ledger, way):
    """The first export that is not taken; what is left of pages already there may hold some."""
    while True:
        export = spans(ledger.take(500))
        if ledger.send(export, way) == AGAIN:
            return export


def _counted(addresses):
    """Calls on /metrics/tools."""
    scraped = httpx.get(f"{addresses['web']}/metrics/tools").text.splitlines()
    totals = [line for line in scraped if line.startswith("toolfault_tool_calls_total{")]
    return sum(float(line.split("}", 1)[1].split()[0]) for line in totals)
