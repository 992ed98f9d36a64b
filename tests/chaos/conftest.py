"""Real processes under load, and what is done to them."""

import os
from contextlib import ExitStack

import pytest
from tests.chaos.database import Database
from tests.chaos.ledger import Ledger
from tests.chaos.replica import Replica

#: `make chaos REPEAT=100` does everything so many times as often.
REPEAT = int(os.environ.get("REPEAT", "1"))


@pytest.fixture(scope="session")
def database(tmp_path_factory):
    """One database for all tests: what one of them stored must outlive what the others do."""
    database = Database(tmp_path_factory.mktemp("postgres"))
    yield database
    database.close()


@pytest.fixture(scope="session")
def _replicas(database):
    with ExitStack() as stack:
        replicas = [Replica(database.url) for _ in range(2)]
        for replica in replicas:
            stack.callback(replica.close)
        yield replicas


@pytest.fixture
def replica(_replicas):
    """A running service."""
    return _replicas[0].running()


@pytest.fixture
def second(_replicas):
    """Another one, before the same database."""
    return _replicas[1].running()


@pytest.fixture(scope="session")
def _ledger():
    return Ledger()


@pytest.fixture
def ledger(_ledger):
    """One ledger for all tests, with the refusals of this one."""
    _ledger.refusals.clear()
    return _ledger
