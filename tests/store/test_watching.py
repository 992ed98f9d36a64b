import os
import subprocess
import sys
import time
from pathlib import Path

PARENT = """
import subprocess, sys, time
from toolfault.store.watching import ends_with_us

with subprocess.Popen(["sleep", "600"]) as child, ends_with_us(child.pid):
    print(child.pid, flush=True)
    time.sleep(600)
"""


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state != "Z"


def test_a_program_ends_with_us_even_after_kill_9():
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True
    ) as parent:
        child = int(parent.stdout.readline())
        assert is_running(child)
        parent.kill()
    deadline = time.monotonic() + 30
    while is_running(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(child)
