import logging
import subprocess
import sys

import pytest

import toolfault
from toolfault import guard, safe_log


class _Full(logging.Handler):
    """A handler whose disk is full."""

    def emit(self, record):
        raise OSError("No space left on device")


@pytest.fixture
def full_disk():
    handler = _Full()
    logging.getLogger().addHandler(handler)
    yield
    logging.getLogger().removeHandler(handler)


class _Away(dict):
    def get(self, key, default=None):
        raise ConnectionError("the session store is away")


def test_what_cannot_be_logged_does_not_raise(full_disk):
    safe_log.log(logging.getLogger("t"), logging.ERROR, "tool %s failed", "t", exc_info=True)


def test_what_is_logged_says_where_it_was(caplog):
    safe_log.log(logging.getLogger("t"), logging.WARNING, "tool %s failed", "t")
    (record,) = caplog.records
    assert (record.getMessage(), record.levelname) == ("tool t failed", "WARNING")
    assert record.filename == "test_safe_log.py"


def test_a_tool_that_succeeded_does_not_fail_because_its_budget_cannot_be_logged(full_disk):
    @guard("t", on_error="raise")
    def one():
        return 1

    with toolfault.run(state=_Away()):
        assert one() == 1


def test_an_error_whose_stack_cannot_be_written_is_told_as_any_other():
    # In a process of its own: with the logging that Python has when nobody has configured it.
    program = """
from toolfault import guard

class Awkward(Exception):
    def __getattribute__(self, name):
        raise RuntimeError(name)

@guard("t")
def broken():
    raise Awkward("customer 4711")

print(broken()["error"]["code"])
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, "INTERNAL\n")
