"""Bringing the database to this version's schema, and refusing to work on another.

The migrations are a folder at the top of the checkout; the wheel carries a copy inside the package.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from psycopg import errors

from toolfault.store import locks
from toolfault.store.connect import connect
from toolfault.store.errors import SchemaError

if TYPE_CHECKING:
    from alembic.config import Config

_OLDEST_SERVER = 16
_ONE_AT_A_TIME = threading.Lock()  # Alembic's context is global to the process


def upgrade(url: str) -> None:
    """Brings the schema to `head()`. Safe to run from several replicas at once.

    Raises:
        SchemaError: the server or the schema in it is not one this version can work with.
        DatabaseUnreachableError: nobody answers at `url`.
    """
    from alembic import command  # noqa: PLC0415  # alembic and SQLAlchemy take half a second
    from sqlalchemy import create_engine, text  # noqa: PLC0415
    from sqlalchemy.pool import NullPool  # noqa: PLC0415

    config = _config()
    _require_known(current(url))
    engine = create_engine(
        "postgresql+psycopg://", creator=lambda: connect(url), poolclass=NullPool
    )
    with _ONE_AT_A_TIME, engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": locks.UPGRADE})
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def current(url: str) -> str | None:
    """The revision of the database; None where toolfault has no tables yet."""
    with connect(url) as conn:
        if (version := conn.info.server_version // 10_000) < _OLDEST_SERVER:
            raise SchemaError(
                f"The database is PostgreSQL {version}; toolfault needs {_OLDEST_SERVER} or newer."
            )
        try:
            row = conn.execute("SELECT version_num FROM alembic_version").fetchone()
        except errors.UndefinedTable:
            return None
    return None if row is None else str(row[0])


def head() -> str:
    """The revision this version of toolfault needs."""
    return _revisions()[0]


def require_current(url: str) -> None:
    """Refuses a database whose schema is not `head()`.

    Raises:
        SchemaError: with the command that helps.
    """
    found = current(url)
    _require_known(found)
    if found is None:
        raise SchemaError("The database has no toolfault tables yet. Run: toolfault db upgrade")
    if found != head():
        raise SchemaError(
            f"The database has schema {found}, this toolfault needs {head()}. Run: toolfault db upgrade"
        )


def _require_known(found: str | None) -> None:
    if found is not None and found not in _revisions():
        raise SchemaError(
            f"The database has schema {found}, which this toolfault does not know: a newer one made it. "
            "Install that version, or a newer one."
        )


def _revisions() -> list[str]:
    """Every revision, the newest first."""
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    return [script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()]


def _config() -> Config:
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(_folder()).replace("%", "%%"))
    return config


def _folder() -> Path:
    package = Path(__file__).resolve().parents[1]
    in_wheel = package / "migrations"
    return in_wheel if in_wheel.is_dir() else package.parents[1] / "migrations"
