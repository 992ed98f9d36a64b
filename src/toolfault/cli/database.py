"""What the commands do that work on the database itself."""

from __future__ import annotations

import contextlib
import secrets
from typing import TYPE_CHECKING, Any

from toolfault.settings import SettingError, StartError
from toolfault.store import schema
from toolfault.store.connect import connect
from toolfault.store.embedded import EmbeddedPostgres
from toolfault.store.erase import erase_conversation
from toolfault.store.queries.base import open_engine
from toolfault.store.read_role import let_in
from toolfault.store.rebase import rebase
from toolfault.store.tokens import Role, create_token, list_tokens, revoke_token

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from uuid import UUID

    from sqlalchemy import Engine

    from toolfault.settings import Settings


@contextlib.contextmanager
def _url(settings: Settings) -> Iterator[str]:
    if settings.database_url:
        yield settings.database_url
        return
    with EmbeddedPostgres(settings.data_dir) as url:
        yield url


def upgrade(settings: Settings, read_password_file: Path | None = None) -> str:
    """Upgrade, and the sentence that says so.

    Raises:
        SettingError: the file with the read role's password cannot be used.
    """
    password = None if read_password_file is None else _password(read_password_file)
    with _url(settings) as url:
        schema.upgrade(url)
        if password is None:
            return f"The schema is at {schema.head()}."
        with connect(url) as conn:
            let_in(conn, password)
    return f"The schema is at {schema.head()}; toolfault_read may log in."


def _password(file: Path) -> str:
    try:
        password = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"--read-password-file: {file} cannot be read ({error}).") from None
    if not password:
        raise SettingError(f"--read-password-file: {file} is empty. Write a password into it.")
    return password


def current(settings: Settings) -> dict[str, str | None]:
    """The revision the database has, and the one this version needs."""
    with _url(settings) as url:
        return {"current": schema.current(url), "head": schema.head()}


def told(revisions: dict[str, str | None]) -> str:
    """The two revisions as a sentence."""
    has, needs = revisions["current"], revisions["head"]
    if has == needs:
        return f"The schema is at {has}, as this version needs."
    return (
        f"The schema is at {has or 'nothing yet'}; this version needs {needs}: toolfault db upgrade"
    )


def restart_totals(settings: Settings) -> str:
    """Set every total to 0, and the sentence that says so."""
    with _url(settings) as url, connect(url) as conn:
        return f"{rebase(conn)} totals start at 0 again."


def erase(settings: Settings, conversation: str) -> dict[str, int]:
    """Erase a conversation; how many rows of each kind went."""
    with _url(settings) as url, connect(url) as conn:
        return erase_conversation(conn, conversation)._asdict()


@contextlib.contextmanager
def url_of(settings: Settings) -> Iterator[str]:
    """The database with this version's tables; an embedded one may be new."""
    with _url(settings) as url:
        if settings.database_url:
            schema.require_current(url)
        else:
            schema.upgrade(url)
        yield url


@contextlib.contextmanager
def _engine(settings: Settings) -> Iterator[Engine]:
    with url_of(settings) as url:
        engine = open_engine(url)
        try:
            yield engine
        finally:
            engine.dispose()


def make_token(
    settings: Settings, name: str, roles: list[str], services: list[str] | None
) -> dict[str, Any]:
    """Make a token; its secret is in the answer and nowhere else.

    Raises:
        SettingError: a role is none.
    """
    if unknown := set(roles) - set(Role):
        raise SettingError(
            f"{min(unknown)} is no role. Roles are {', '.join(role.value for role in Role)}."
        )
    with _engine(settings) as engine:
        token, secret = create_token(engine, name, [Role(role) for role in roles], services or None)
    return {"id": str(token.id), "name": name, "roles": token.roles, "secret": secret}


def keep_token(
    settings: Settings, name: str, roles: list[str], services: list[str] | None, file: Path
) -> tuple[dict[str, Any], str]:
    """Make a token for programs that read it from a file, unless the file has one already.

    Raises:
        SettingError: a role is none, or the file cannot be written.
    """
    try:
        if file.exists() and file.read_text().strip():
            return {"name": name, "file": str(file)}, f"{file} has a token already; it is kept."
    except OSError as error:
        raise SettingError(f"{file} cannot be read ({error.strerror}).") from None
    return replace_token(settings, name, roles, services, file)


def replace_token(
    settings: Settings, name: str, roles: list[str], services: list[str] | None, file: Path
) -> tuple[dict[str, Any], str]:
    """Make a token and put it into the file at once: who reads it finds the old one or the new one.

    Raises:
        SettingError: a role is none, or the file cannot be written.
    """
    beside = file.with_name(f".{file.name}.{secrets.token_hex(4)}.new")
    try:
        with beside.open("w") as written:
            made = make_token(settings, name, roles, services)
            written.write(made.pop("secret") + "\n")
        beside.replace(file)
    except OSError as error:
        raise SettingError(f"{file} cannot be written ({error.strerror}).") from None
    finally:
        beside.unlink(missing_ok=True)
    return made | {"file": str(file)}, f"The token {name} is in {file}."


def tokens(settings: Settings) -> list[dict[str, Any]]:
    """Every token, without its secret."""
    with _engine(settings) as engine:
        return [
            {
                "id": str(token.id),
                "name": token.name,
                "roles": token.roles,
                "services": token.services,
                "created_at": token.created_at.isoformat(),
                "revoked_at": token.revoked_at and token.revoked_at.isoformat(),
            }
            for token in list_tokens(engine)
        ]


def revoke(settings: Settings, token: UUID) -> str:
    """End a token, and the sentence that says so.

    Raises:
        StartError: there is no valid token of that id.
    """
    with _engine(settings) as engine:
        if not revoke_token(engine, token):
            raise StartError(f"There is no valid token {token}. List them: toolfault token list")
    return f"{token} is revoked."
