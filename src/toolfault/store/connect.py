"""Connections to the database, and the sentence when there is none."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from toolfault.store.errors import DatabaseUnreachableError

CONNECT_SECONDS = 5


def connect(url: str, **options: Any) -> psycopg.Connection:
    """A connection to the database at `url`.

    Raises:
        DatabaseUnreachableError: with a sentence that never holds the password.
    """
    place = address(url)
    try:
        return psycopg.connect(url, **{"connect_timeout": CONNECT_SECONDS, **options})
    except psycopg.OperationalError as error:
        reason = str(error).strip().partition("\n")[0]  # what follows asks the reader questions
        raise DatabaseUnreachableError(
            f"The database {place} cannot be reached: {reason}. Is PostgreSQL running there, and is "
            "TOOLFAULT_DATABASE_URL right?"
        ) from None


def address(url: str) -> str:
    """The database's place as it may be shown: without user and password."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:  # its text quotes the whole address, password included
        raise DatabaseUnreachableError(
            "The database address cannot be read. TOOLFAULT_DATABASE_URL looks like "
            "postgresql://user:password@host:5432/database."
        ) from None
    name = parts.get("dbname") or parts.get("user") or ""
    return f"{name!r} at {parts.get('host') or 'localhost'}:{parts.get('port') or 5432}"
