"""Alembic's entry. `toolfault.store.schema` hands over a connection that is in a transaction."""

import os
import re

from alembic import context
from sqlalchemy import Connection, create_engine

from toolfault.store.connect import connect
from toolfault.store.models import METADATA, PARTITION_NAME


def _is_ours(name: str | None, kind: str, _parents: object) -> bool:
    return kind != "table" or (name is not None and re.search(PARTITION_NAME, name) is None)


def _run(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=METADATA, include_name=_is_ours)
    with context.begin_transaction():
        context.run_migrations()


if (given := context.config.attributes.get("connection")) is not None:
    _run(given)
else:  # `alembic revision --autogenerate` in a checkout
    engine = create_engine(
        "postgresql+psycopg://", creator=lambda: connect(os.environ["TOOLFAULT_DATABASE_URL"])
    )
    with engine.begin() as own:
        _run(own)
