"""The role that dashboards read with; the migrations make it, unable to log in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg import errors, sql

from toolfault.store.errors import StoreError

if TYPE_CHECKING:
    from psycopg import Connection

READ_ROLE = "toolfault_read"


def let_in(conn: Connection, password: str) -> None:
    """Gives it a password. Only its hash is sent: the server may log statements.

    Raises:
        StoreError: the role is not there, or not ours to change.
    """
    kept = conn.pgconn.encrypt_password(password.encode(), READ_ROLE.encode(), b"scram-sha-256")
    let = sql.SQL("ALTER ROLE {} LOGIN PASSWORD {}").format(
        sql.Identifier(READ_ROLE), sql.Literal(kept.decode())
    )
    try:
        with conn.transaction():
            conn.execute(let)
    except (errors.UndefinedObject, errors.InsufficientPrivilege) as refusal:
        reason = str(refusal).partition("\n")[0]
        raise StoreError(
            f"{READ_ROLE} got no password ({reason}). Let somebody who may create roles run: "
            f"ALTER ROLE {READ_ROLE} LOGIN PASSWORD '...'"
        ) from None
