"""Where a record comes from: service, environment and version of its resource."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from google.protobuf.message import DecodeError

from toolfault import conventions as c
from toolfault.ingest import wire
from toolfault.ingest.errors import MalformedError
from toolfault.ingest.scrubbing import label, name

UNKNOWN_SERVICE = "unknown_service"
UNKNOWN_ENVIRONMENT = "unknown"
_REMEMBERED_BYTES = 16_384


class Place(NamedTuple):
    """The same for every record of a resource."""

    service: str
    environment: str
    version: str | None


def place_of(resource: bytes) -> Place:
    """The place a serialized Resource names."""
    return _remembered(resource) if len(resource) <= _REMEMBERED_BYTES else _read(resource)


def _read(resource: bytes) -> Place:
    try:
        attributes = wire.Resource.FromString(resource).attributes
    except DecodeError as error:
        raise MalformedError(f"a resource is malformed: {error}") from None
    return Place(
        label(attributes.get(c.SERVICE_NAME)) or UNKNOWN_SERVICE,
        label(attributes.get(c.ENVIRONMENT) or attributes.get(c.ENVIRONMENT_DEPRECATED))
        or UNKNOWN_ENVIRONMENT,
        name(attributes.get(c.SERVICE_VERSION)),
    )


_remembered = lru_cache(1024)(_read)
