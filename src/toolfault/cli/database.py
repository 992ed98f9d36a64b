"""What `toolfault db` does."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from toolfault.store import schema
from toolfault.store.embedded import EmbeddedPostgres

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolfault.settings import Settings


@contextlib.contextmanager
def _url(settings: Settings) -> Iterator[str]:
    if settings.database_url:
        yield settings.database_url
        return
    with EmbeddedPostgres(settings.data_dir) as url:
        yield url


def upgrade(settings: Settings) -> str:
    """Upgrade, and the sentence that says so."""
    with _url(settings) as url:
        schema.upgrade(url)
    return f"The schema is at {schema.head()}."


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
