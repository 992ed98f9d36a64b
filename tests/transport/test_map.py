import importlib
import subprocess
import sys

import pytest

from toolfault.transport import clients, databases, services

NAMES = sorted(clients.RULES | databases.RULES | services.RULES)
PACKAGES = {name.partition(".")[0] for name in NAMES} - set(sys.stdlib_module_names)


def test_the_map_imports_none_of_the_clients_it_knows():
    program = "import sys, toolfault; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    assert {"httpx", "grpc", "botocore", "psycopg"} < PACKAGES
    assert PACKAGES & set(loaded.stdout.decode().split()) == set()


@pytest.mark.parametrize("name", NAMES)
def test_every_name_in_the_map_is_that_of_a_real_exception(name):
    module, _, qualname = name.rpartition(".")
    kind = getattr(importlib.import_module(module), qualname)

    assert issubclass(kind, Exception)
    assert f"{kind.__module__}.{kind.__qualname__}" == name
