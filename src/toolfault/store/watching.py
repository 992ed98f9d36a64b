"""Ends a program when we are gone, whatever our end was."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

# The pipe closes even after kill -9.
_WATCH = 'read -r _; kill -INT "$1"'


@contextmanager
def ends_with_us(pid: int, **options: Any) -> Iterator[None]:
    """Inside, `pid` gets SIGINT if this process dies.

    Args:
        pid: of the program.
        options: of `subprocess.Popen`, for the process that watches: it needs the right to signal.
    """
    reader, writer = os.pipe()
    watcher = subprocess.Popen(
        ["/bin/sh", "-c", _WATCH, "sh", str(pid)],
        stdin=reader,
        stdout=subprocess.DEVNULL,
        **options,
    )
    os.close(reader)
    try:
        yield
    finally:
        watcher.kill()
        watcher.wait()
        os.close(writer)
