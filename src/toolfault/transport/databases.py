"""PostgreSQL and SQLite (alone or under SQLAlchemy) and Redis."""

from __future__ import annotations

from toolfault import carried
from toolfault.error_map import Rule, permanent, timed_out, transient
from toolfault.errors import ToolError
from toolfault.taxonomy import Code, Effect
from toolfault.transport.statuses import (
    BUSY,
    CERTIFICATE,
    CONFLICT,
    DISCONNECTED,
    FORBIDDEN,
    NEVER_SENT,
    POOL_EXHAUSTED,
    READ_TIMED_OUT,
    UNAUTHORIZED,
    not_connected,
)

_ROLLED_BACK = transient("transaction_rolled_back")
_REFUSED_HERE = permanent("upstream_unavailable", code=Code.UNAVAILABLE, effect=Effect.NONE)

#: By SQLSTATE, else by its class (the first two characters).
_SQLSTATES: dict[str, Rule] = {
    "40001": _ROLLED_BACK,  # serialization failure
    "40P01": _ROLLED_BACK,  # deadlock
    "55P03": _ROLLED_BACK,  # lock not available
    "23503": CONFLICT,  # foreign key
    "23505": CONFLICT,  # unique
    "23P01": CONFLICT,  # exclusion
    "28": UNAUTHORIZED,
    "42501": FORBIDDEN,
    "08001": NEVER_SENT,
    "08004": _REFUSED_HERE,
    "08": DISCONNECTED,
    "53300": BUSY,  # too many connections
    "53": permanent("upstream_out_of_resources", code=Code.UNAVAILABLE),
    "57014": timed_out(),  # statement timeout
    "57P01": DISCONNECTED,
    "57P02": DISCONNECTED,
    "57P03": BUSY,  # starting up
    "57P05": DISCONNECTED,
}

#: A server that answers the connection attempt does it in words; there is no SQLSTATE.
_TURNED_AWAY: tuple[tuple[str, Rule], ...] = (
    ("too many clients", BUSY),
    ("remaining connection slots", BUSY),
    ("starting up", BUSY),
    ("shutting down", BUSY),
    ("in recovery mode", BUSY),
    ("certificate verify failed", CERTIFICATE),
    ("authentication failed", UNAUTHORIZED),
    ("no password supplied", UNAUTHORIZED),
    ("no pg_hba.conf entry", UNAUTHORIZED),
    ("FATAL", _REFUSED_HERE),  # no such database, no such role, ...
)


def _psycopg(tool: str, error: BaseException) -> ToolError | None:
    state = carried.read(error, "sqlstate")
    if not isinstance(state, str):
        return None
    rule = _SQLSTATES.get(state) or _SQLSTATES.get(state[:2])
    return rule(tool, error) if rule else None


def _psycopg_connection(tool: str, error: BaseException) -> ToolError | None:
    """An `OperationalError` without SQLSTATE: not connected, or no longer."""
    if carried.read(error, "sqlstate") is not None:
        return _psycopg(tool, error)
    told = carried.text(error)
    if carried.read(error, "pgconn") is None and "failed to resolve host" not in told:
        return DISCONNECTED(tool, error)
    rule = next((rule for words, rule in _TURNED_AWAY if words in told), NEVER_SENT)
    return rule(tool, error)


def _sqlite(tool: str, error: BaseException) -> ToolError | None:
    name = carried.read(error, "sqlite_errorname")
    if not isinstance(name, str):
        return None
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return _ROLLED_BACK(tool, error)
    return CONFLICT(tool, error) if name in _SQLITE_CONFLICTS else None


_SQLITE_CONFLICTS = frozenset(
    f"SQLITE_CONSTRAINT_{kind}" for kind in ("FOREIGNKEY", "PRIMARYKEY", "UNIQUE")
)


def _redis_connection(tool: str, error: BaseException) -> ToolError | None:
    told = carried.text(error)
    if "max number of clients" in told:
        return BUSY(tool, error)
    if " connecting to " in told:
        return not_connected(tool, error)
    return DISCONNECTED(tool, error)


def _redis_timeout(tool: str, error: BaseException) -> ToolError | None:
    connecting = carried.text(error) == "Timeout connecting to server"
    return (NEVER_SENT if connecting else READ_TIMED_OUT)(tool, error)


_SQL: dict[str, Rule] = {
    "psycopg.Error": _psycopg,
    "psycopg.OperationalError": _psycopg_connection,
    "psycopg.errors.ConnectionTimeout": NEVER_SENT,
    "sqlite3.Error": _sqlite,
    "sqlalchemy.exc.TimeoutError": POOL_EXHAUSTED,
}

_REDIS: dict[str, Rule] = {
    f"redis.exceptions.{name}": rule
    for name, rule in {
        "ConnectionError": _redis_connection,
        "TimeoutError": _redis_timeout,
        "MaxConnectionsError": POOL_EXHAUSTED,
        "BusyLoadingError": BUSY,
        "TryAgainError": BUSY,
        "ClusterDownError": BUSY,
        "ReadOnlyError": _REFUSED_HERE,
        "OutOfMemoryError": _REFUSED_HERE,
        "AuthenticationError": UNAUTHORIZED,
        "AuthorizationError": FORBIDDEN,
        "NoPermissionError": FORBIDDEN,
        "WatchError": CONFLICT,
    }.items()
}

RULES = _SQL | _REDIS
