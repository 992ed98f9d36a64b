"""Tokens of the API: random, shown once, kept as a hash."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID, uuid4

from toolfault.store.queries.base import columns, execute, fetch, scalar, statement

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy import Engine

_PREFIX = "tft"
_SECRET_BYTES = 32
_LONGEST = 200
#: Compared with when there is no such token, so that both ways take the same steps.
_NO_HASH = bytes(32)


class Role(StrEnum):
    """What a token may do."""

    INGEST = "ingest"  # send telemetry
    SCRAPE = "scrape"  # read metrics, post alerts
    SUPPORT = "support"  # cards, lists
    ENGINEER = "engineer"  # exception detail, logs, status of groups
    ADMIN = "admin"  # tokens, the audit


class Token(NamedTuple):
    """A token without its secret."""

    id: UUID
    name: str
    created_at: datetime
    revoked_at: datetime | None
    roles: list[str]
    services: list[str] | None


_CREATE = statement(
    "INSERT INTO api_token (created_at, id, name, secret, roles, services)",
    "VALUES (%(now)s, %(id)s, %(name)s, %(secret)s, %(roles)s, CAST(%(services)s AS text[]))",
)
_LIST = statement("SELECT", columns(Token), "FROM api_token ORDER BY created_at, id")
_BY_ID = statement(
    "SELECT secret,", columns(Token), "FROM api_token WHERE id = %(id)s AND revoked_at IS NULL"
)
_REVOKE = statement(
    "UPDATE api_token SET revoked_at = %(now)s WHERE id = %(id)s AND revoked_at IS NULL"
)
_ANY = statement("SELECT EXISTS (SELECT 1 FROM api_token WHERE revoked_at IS NULL)")


def create_token(
    engine: Engine, name: str, roles: Collection[Role], services: Collection[str] | None = None
) -> tuple[Token, str]:
    """A new token and its secret, which is not kept and cannot be shown again.

    Args:
        engine: as `store.queries.base.open_engine` makes it.
        name: whose it is, for lists and the audit.
        roles: what it may do.
        services: the only services it may see; by default all.
    """
    token = Token(
        id=uuid4(),
        name=name,
        created_at=datetime.now(UTC),
        revoked_at=None,
        roles=sorted(role.value for role in roles),
        services=None if services is None else sorted(services),
    )
    secret = f"{_PREFIX}_{token.id.hex}_{secrets.token_urlsafe(_SECRET_BYTES)}"
    with engine.begin() as conn:
        values = {"now": token.created_at, "id": token.id, "name": name, "secret": _hash(secret)}
        execute(conn, _CREATE, {**values, "roles": token.roles, "services": token.services})
    return token, secret


def list_tokens(engine: Engine) -> list[Token]:
    """All tokens, revoked ones too, oldest first."""
    with engine.connect() as conn:
        return fetch(conn, Token, _LIST)


def revoke_token(engine: Engine, id_: UUID) -> bool:
    """Ends a token now; False when there is no valid one under that id."""
    with engine.begin() as conn:
        return execute(conn, _REVOKE, {"id": id_, "now": datetime.now(UTC)}).rowcount > 0


def verify_token(engine: Engine, secret: str) -> Token | None:
    """The token behind a secret, or None. Compares in constant time."""
    kept, token = _stored(engine, secret)
    # 256 random bits need no slow hash: nobody can try enough of them.
    return token if hmac.compare_digest(kept, _hash(secret)) else None


def has_tokens(engine: Engine) -> bool:
    """Whether any valid token exists."""
    with engine.connect() as conn:
        return bool(scalar(conn, _ANY))


def _stored(engine: Engine, secret: str) -> tuple[bytes, Token | None]:
    """The hash kept for the id inside a secret, and its token."""
    parts = secret.split("_", 2)
    if len(secret) > _LONGEST or len(parts) != 3 or parts[0] != _PREFIX:
        return _NO_HASH, None
    try:
        id_ = UUID(hex=parts[1])
    except ValueError:
        return _NO_HASH, None
    with engine.connect() as conn:
        found = execute(conn, _BY_ID, {"id": id_}).fetchone()
    return (found[0], Token(*found[1:])) if found else (_NO_HASH, None)


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
