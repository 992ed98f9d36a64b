"""The built wheel, in empty environments outside the checkout."""

import json
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from tests.end_to_end.harness import environment

ROOT = Path(__file__).parents[1]
_LOCK = ROOT / "requirements.lock"
_BASE = """
import sys
before = set(sys.modules)
import toolfault
print(*{name.partition(".")[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names))
"""


def _run(*command, check=True, **options):
    run = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False,
        **{"env": environment(), **options},
    )  # fmt: skip
    assert not check or run.returncode == 0, run.stderr
    return run


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from the source distribution, as a release is."""
    folder = tmp_path_factory.mktemp("dist")
    _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def install(tmp_path_factory, wheel):
    """Makes an environment with an extra of the wheel, versions as locked: its `bin` folder."""

    def make(extra):
        folder = tmp_path_factory.mktemp("environment")
        venv.create(folder, with_pip=False)
        uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet"]
        _run(*uv, "--python", folder / "bin/python", "--constraint", _LOCK, f"toolfault{extra} @ {wheel.as_uri()}",
             env=environment(UV_SYSTEM_CERTS="true"))  # fmt: skip
        return folder / "bin"

    return make


def test_the_wheel_holds_every_migration_and_all_data_files(wheel):
    names = zipfile.ZipFile(wheel).namelist()

    migrations = {path.name for path in (ROOT / "migrations/versions").glob("*.py")}
    assert migrations == {
        Path(name).name for name in names if name.startswith("toolfault/migrations/versions/")
    }
    assert "toolfault/migrations/env.py" in names
    assert "toolfault/py.typed" in names
    for folder in ("templates", "static"):
        data = {
            path.name for path in (ROOT / "src/toolfault/web" / folder).iterdir() if path.is_file()
        }
        assert data
        assert data <= {Path(name).name for name in names if f"web/{folder}/" in name}


def test_pytest_finds_the_contract_kit_by_itself(wheel):
    archive = zipfile.ZipFile(wheel)
    (points,) = [name for name in archive.namelist() if name.endswith("entry_points.txt")]
    plugin = "[pytest11]\ntoolfault.pytest_plugin = toolfault.pytest_plugin\n"
    assert plugin in archive.read(points).decode()


def test_the_base_install_is_the_opentelemetry_api_and_says_which_extra_is_missing(
    install, tmp_path
):
    bin_ = install("")

    loaded = set(_run(bin_ / "python", "-W", "error", "-c", _BASE, cwd=tmp_path).stdout.split())
    assert loaded <= {
        "toolfault",
        "opentelemetry",
        "typing_extensions",
        "importlib_metadata",
        "zipp",
    }

    command = _run(bin_ / "toolfault", "up", cwd=tmp_path, check=False)
    assert command.returncode == 1
    assert command.stderr == (
        "toolfault: the package typer is not installed. This command needs the server extra: "
        'pip install "toolfault[server]"\n'
    )


def test_the_server_extra_runs_the_whole_demo(install, tmp_path):
    bin_ = install("[server]")

    run = _run(bin_ / "toolfault", "demo", "--once", "--json", cwd=tmp_path)

    told = json.loads(run.stdout)
    assert [
        (call["tool"], call["outcome"], call["code"], call["attempts"], call["effect"])
        for call in told["references"]
    ] == [
        ("book_meeting", "invalid", "INVALID_ARGUMENT", 1, "none"),
        ("book_meeting", "failed", "UNAVAILABLE", 1, "none"),
        ("book_meeting", "failed", "UNAVAILABLE", 1, "none"),
        ("cancel_booking", "declined", "CONFLICT", 1, "none"),
        ("send_invitation", "timed_out", "UNAVAILABLE", 1, "unknown"),
        ("summarise_week", "failed", "INTERNAL", 1, "none"),
        ("delete_calendar", "refused", "PERMISSION_DENIED", 0, "none"),
        ("create_event", "not_found", "NOT_FOUND", 0, "none"),
    ]
    assert len({call["reference"] for call in told["references"]}) == 8
    assert run.stderr == ""


def test_the_lock_holds_hashes_and_no_index_address():
    text = _LOCK.read_text()

    requirements = re.findall(r"^[a-z][^\s=]*==", text, re.MULTILINE)
    assert len(requirements) > 50
    assert text.count("--hash=sha256:") >= len(requirements)
    assert "://" not in text


def test_the_lock_of_the_foreign_client_holds_no_registry_address():
    packages = json.loads((ROOT / "package-lock.json").read_text())["packages"]

    assert len(packages) > 5
    assert not [name for name, package in packages.items() if "resolved" in package]
