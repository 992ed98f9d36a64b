"""Every setting of the service: one table, read from the environment, refused when unexpected."""

# ruff: noqa: RUF009 - `_setting` returns a dataclass field
from __future__ import annotations

import difflib
import os
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PREFIX = "TOOLFAULT_"
#: Settings of the library in an agent's process, which may share our environment.
_OF_THE_LIBRARY = frozenset({"TOOLFAULT_EXCEPTION_DETAIL"})
_MEBIBYTE = 1024 * 1024
_MAX_PORT = 65535


class StartError(Exception):
    """The service cannot start as it was told to; says why and what to change."""


class SettingError(StartError, ValueError):
    """A setting that cannot be used; says which, why and what would be accepted."""


def _port(text: str) -> int:
    number = int(text)
    if not 0 <= number <= _MAX_PORT:
        raise ValueError
    return number


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def _http_address(text: str) -> str:
    if not text.startswith(("http://", "https://")) or not urlsplit(text).hostname:
        raise ValueError
    return text.rstrip("/")


def _postgres_url(text: str) -> str:
    if not text.startswith(("postgresql://", "postgres://")):
        raise ValueError
    return text.replace("postgres://", "postgresql://", 1)


def _level(text: str) -> str:
    if text.lower() not in ("debug", "info", "warning", "error"):
        raise ValueError
    return text.lower()


def _folder() -> Path:
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "toolfault"


def _setting(
    sentence: str,
    accepts: str,
    read: Callable[[str], Any],
    default: Any = None,
    *,
    secret: bool = False,
) -> Any:
    meta = {"sentence": sentence, "accepts": accepts, "read": read}
    if callable(default):
        return field(default_factory=default, metadata=meta, repr=not secret)
    return field(default=default, metadata=meta, repr=not secret)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The service's settings. `database_url` is `TOOLFAULT_DATABASE_URL`, and so on."""

    database_url: str | None = _setting(
        "The PostgreSQL (16 or later) to use; without it an embedded one runs in the data folder.",
        "postgresql://user:password@host:5432/database", _postgres_url, secret=True,
    )  # fmt: skip
    data_dir: Path = _setting(
        "Where the embedded PostgreSQL keeps its data.", "a folder", Path, _folder
    )
    host: str = _setting("The address every port is opened on.", "an address", str, "127.0.0.1")
    grpc_port: int = _setting("OTLP over gRPC.", "a port, 0 for a free one", _port, 4317)
    http_port: int = _setting("OTLP over HTTP.", "a port, 0 for a free one", _port, 4318)
    web_port: int = _setting(
        "Look-up pages, API and metrics.", "a port, 0 for a free one", _port, 8700
    )
    max_request_bytes: int = _setting(
        "The largest OTLP request, after decompression.", "bytes", _positive, 64 * _MEBIBYTE
    )
    retention_ok_days: int = _setting(
        "How long calls that succeeded are kept.", "days", _positive, 3
    )
    retention_days: int = _setting("How long all other calls are kept.", "days", _positive, 30)
    retention_outline_days: int = _setting(
        "How long a reference and its outline are kept.", "days", _positive, 400
    )
    log_level: str = _setting(
        "The least severe records of the service's own log.",
        "debug, info, warning or error",
        _level,
        "info",
    )
    tls_certificate: Path | None = _setting(
        "The certificate chain for TLS on every port.", "a PEM file", Path
    )
    tls_key: Path | None = _setting("The private key of that certificate.", "a PEM file", Path)
    base_url: str | None = _setting(
        "The address people reach the pages at, for links in alerts.",
        "http:// or https:// address", _http_address,
    )  # fmt: skip
    trace_link: str | None = _setting(
        "Where a card's trace is shown; {trace_id} {span_id} {service} {start_ms} {end_ms} are filled in.",
        "http:// or https:// address", _http_address,
    )  # fmt: skip
    log_link: str | None = _setting(
        "Where a card's logs are shown; {reference} and those of TRACE_LINK are filled in.",
        "http:// or https:// address", _http_address,
    )  # fmt: skip
    alerts_file: Path | None = _setting(
        "What `toolfault alerts build --settings` was given, so that the runbook page says the same.",
        "a YAML file", Path,
    )  # fmt: skip
    url: str = _setting(
        "The service the command line asks.",
        "http:// or https:// address", _http_address, "http://127.0.0.1:8700",
    )  # fmt: skip
    token: str | None = _setting(
        "The token the command line shows to that service.", "a token", str, secret=True
    )

    def __post_init__(self) -> None:
        """TLS needs both files."""
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise SettingError(
                "TOOLFAULT_TLS_CERTIFICATE and TOOLFAULT_TLS_KEY go together: set both or neither."
            )


def read(environ: Mapping[str, str] | None = None, **flags: Any) -> Settings:
    """The environment's settings; a flag that is not None wins over its variable."""
    environ = os.environ if environ is None else environ
    _refuse_unknown(environ)
    readers = {setting.name: setting for setting in fields(Settings)}
    values = {
        name: _parsed(f"--{name.replace('_', '-')}", value, readers[name])
        if isinstance(value, str)
        else value
        for name, value in flags.items()
        if value is not None
    }
    for setting in fields(Settings):
        text = _told(environ, setting)
        if text and setting.name not in values:
            values[setting.name] = _parsed(PREFIX + setting.name.upper(), text, setting)
    return Settings(**values)


def _told(environ: Mapping[str, str], setting: Any) -> str | None:
    """The text of a setting; a secret may stand in the file that NAME_FILE names."""
    name = PREFIX + setting.name.upper()
    file = environ.get(f"{name}_FILE")
    if setting.repr or not file or environ.get(name):
        return environ.get(name)
    try:
        return Path(file).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"{name}_FILE: {file} cannot be read ({error}).") from None


def _line(text: str) -> str:
    """The text without the newline a mounted secret ends in; nothing else unprintable is taken."""
    line = text.strip()
    if not line.isprintable():
        raise ValueError
    return line


def _parsed(name: str, text: str, setting: Any) -> Any:
    try:
        return setting.metadata["read"](_line(text))
    except ValueError:
        shown = "its value" if not setting.repr else repr(text)
        raise SettingError(
            f"{name}: {shown} is not accepted. Give {setting.metadata['accepts']}."
        ) from None


def _refuse_unknown(environ: Mapping[str, str]) -> None:
    known = {PREFIX + setting.name.upper() for setting in fields(Settings)} | _OF_THE_LIBRARY
    known |= {f"{PREFIX}{s.name.upper()}_FILE" for s in fields(Settings) if not s.repr}
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in known:
            near = difflib.get_close_matches(name, known, 1)
            meant = f"Did you mean {near[0]}?" if near else f"Known are {', '.join(sorted(known))}."
            raise SettingError(f"{name} is no setting of toolfault. {meant}")
