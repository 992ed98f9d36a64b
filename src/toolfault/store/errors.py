"""What can go wrong with the database, each with the sentence a user reads.

StoreError
├── DatabaseUnreachableError   nobody answers, or not with these credentials
├── EmbeddedError              the server we start ourselves
└── SchemaError                the schema is not the one this version needs
"""

from __future__ import annotations


class StoreError(Exception):
    """The database cannot be used."""


class DatabaseUnreachableError(StoreError):
    """Nobody answers at the address, or not with these credentials."""


class EmbeddedError(StoreError):
    """The embedded PostgreSQL cannot be started."""


class SchemaError(StoreError):
    """The schema of the database is not the one this version needs."""
