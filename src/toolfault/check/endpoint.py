"""Where an agent on this machine sends its spans, as the standard `OTEL_*` variables say."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from opentelemetry.util.re import parse_env_headers

from toolfault.settings import SettingError

if TYPE_CHECKING:
    from collections.abc import Mapping

GRPC, HTTP = "grpc", "http/protobuf"
_DEFAULTS = {GRPC: "http://localhost:4317", HTTP: "http://localhost:4318"}
_PORTS = {GRPC: 4317, HTTP: 4318}
_PREFIX = "OTEL_EXPORTER_OTLP_"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One OTLP endpoint for traces."""

    protocol: str
    host: str
    port: int
    path: str
    is_tls: bool
    headers: dict[str, str] = field(repr=False)
    certificate: Path | None

    def tls(self) -> ssl.SSLContext:
        """What its certificate is checked with.

        Raises:
            SettingError: the file of trusted certificates cannot be used.
        """
        try:
            return ssl.create_default_context(cafile=self.certificate)
        except OSError as error:
            raise SettingError(
                f"{_PREFIX}CERTIFICATE: {self.certificate} cannot be used ({error})."
            ) from None

    def __str__(self) -> str:
        scheme = "https" if self.is_tls else "http"
        return f"{scheme}://{self.host}:{self.port}{self.path}"


def read(environ: Mapping[str, str], endpoint: str | None, protocol: str | None) -> Endpoint:
    """The endpoint of the variables; what is given as an argument wins.

    Raises:
        SettingError: a value that no exporter accepts.
    """
    protocol = protocol or _told(environ, "PROTOCOL") or HTTP
    if protocol not in _DEFAULTS:
        raise SettingError(
            f"{_PREFIX}PROTOCOL: {protocol!r} is not accepted. Give {GRPC} or {HTTP}."
        )
    whole = None if endpoint else environ.get(f"{_PREFIX}TRACES_ENDPOINT")
    address = endpoint or whole or environ.get(f"{_PREFIX}ENDPOINT") or _DEFAULTS[protocol]
    is_insecure = (_told(environ, "INSECURE") or "").lower() == "true"
    if "://" not in address and protocol == GRPC:  # the exporter's own rule
        address = f"{'http' if is_insecure else 'https'}://{address}"
    parts = urlsplit(address)
    try:
        port = parts.port or (443 if parts.scheme == "https" else _PORTS[protocol])
    except ValueError:
        port = 0
    if parts.scheme not in ("http", "https") or not parts.hostname or not port:
        raise SettingError(
            f"{_PREFIX}ENDPOINT: {address!r} is not accepted. Give an address such as "
            f"{_DEFAULTS[protocol]}."
        )
    certificate = _told(environ, "CERTIFICATE")
    return Endpoint(
        protocol=protocol,
        host=parts.hostname,
        port=port,
        path=_path(parts.path, protocol, is_whole=whole is not None),
        is_tls=parts.scheme == "https",
        headers=dict(parse_env_headers(_told(environ, "HEADERS") or "", liberal=True)),
        certificate=Path(certificate) if certificate else None,
    )


def _path(path: str, protocol: str, *, is_whole: bool) -> str:
    """A variable for one signal is taken as it is, the common one gets the signal's path."""
    if protocol == GRPC:
        return ""
    return path or "/" if is_whole else f"{path.rstrip('/')}/v1/traces"


def _told(environ: Mapping[str, str], name: str) -> str | None:
    return environ.get(f"{_PREFIX}TRACES_{name}") or environ.get(f"{_PREFIX}{name}")
