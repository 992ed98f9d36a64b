"""What an agent imports is small: the base install is opentelemetry-api and the library."""

import subprocess
import sys
from pathlib import Path

_LOADED = """
import sys
before = set(sys.modules)
import toolfault
print(*sorted(set(sys.modules) - before))
"""
SERVER = {"store", "ingest", "web", "server", "demo", "cli", "metrics", "dashboards", "alerts"}
#: opentelemetry-api and what it depends on.
BASE = {"opentelemetry", "typing_extensions", "importlib_metadata", "zipp"}


def _modules():
    run = subprocess.run(
        [sys.executable, "-c", _LOADED], capture_output=True, text=True, check=True
    )
    return run.stdout.split()


def test_importing_the_library_loads_nothing_but_the_opentelemetry_api():
    top = {name.partition(".")[0] for name in _modules()}

    others = top - {"toolfault"} - BASE - set(sys.stdlib_module_names)
    assert others == set()


def test_importing_the_library_loads_no_sdk():
    assert not [name for name in _modules() if name.startswith("opentelemetry.sdk")]


def test_importing_the_library_loads_no_part_of_the_server():
    parts = {name.split(".")[1] for name in _modules() if name.startswith("toolfault.")}

    assert parts & SERVER == set()


def test_each_layer_imports_only_what_is_below_it():
    # A process of its own: it sets up logging, and with that disables every logger there is.
    command = Path(sys.executable).with_name("lint-imports")
    run = subprocess.run([command, "--no-cache"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout
