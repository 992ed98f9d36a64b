import subprocess
import sys
from pathlib import Path

import pytest

from toolfault.transport import clients, databases, services

ROOT = Path(__file__).parents[2]
#: Agent frameworks disagree about their dependencies, so each has an environment of its own.
ENVIRONMENTS = {"agents": "openai_agents", "pydantic_ai": "pydantic_ai", "strands": "strands"}
NAMES = sorted(clients.RULES | databases.RULES | services.RULES)
PACKAGES = {name.partition(".")[0] for name in NAMES} - set(sys.stdlib_module_names)


def test_the_map_imports_none_of_the_clients_it_knows():
    program = "import sys, toolfault; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    assert {"httpx", "grpc", "botocore", "psycopg"} < PACKAGES
    assert PACKAGES & set(loaded.stdout.decode().split()) == set()


CHECK = """
import importlib, sys

for name in sys.argv[1:]:
    module, _, qualname = name.rpartition(".")
    kind = getattr(importlib.import_module(module), qualname)
    assert issubclass(kind, Exception), name
    assert f"{kind.__module__}.{kind.__qualname__}" == name, name
"""


def test_every_name_in_the_map_is_that_of_a_real_exception():
    names = [name for name in NAMES if name.partition(".")[0] not in ENVIRONMENTS]

    subprocess.run([sys.executable, "-c", CHECK, *names], check=True)


@pytest.mark.parametrize("package", sorted(ENVIRONMENTS))
def test_every_frameworks_name_in_the_map_is_that_of_a_real_exception(package):
    names = [name for name in NAMES if name.partition(".")[0] == package]
    python = ROOT / ".venvs" / ENVIRONMENTS[package] / "bin" / "python"

    assert names
    subprocess.run([python, "-c", CHECK, *names], check=True)
