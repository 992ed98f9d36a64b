"""Opens the service's ports, or says in a sentence why one cannot be opened."""

from __future__ import annotations

import errno
import ipaddress
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolfault.settings import StartError

if TYPE_CHECKING:
    from pathlib import Path

    from toolfault.settings import Settings


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where a running service is reached."""

    grpc: str
    http: str
    web: str


def listen(settings: Settings, name: str) -> socket.socket:
    """A socket on the port called `name` (`grpc`, `http`, `web`).

    Raises:
        StartError: the port is taken or the address is not ours; names the flag.
    """
    host, port = settings.host, getattr(settings, f"{name}_port")
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # The protocol is named: asyncio sends small answers at once only where it can see TCP.
        opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    except OSError as error:
        raise StartError(_no_address(host, error)) from None
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # restart at once
    try:
        opened.bind((host, port))
        opened.listen()
    except OSError as error:
        opened.close()
        raise StartError(_unopened(host, port, name, error)) from None
    return opened


def _no_address(host: str, error: OSError) -> str:
    return f"The address {host} cannot be used ({error.strerror}). Change --host or TOOLFAULT_HOST."


def _unopened(host: str, port: int, name: str, error: OSError) -> str:
    flag, variable = f"--{name}-port", f"TOOLFAULT_{name.upper()}_PORT"
    if error.errno == errno.EADDRINUSE:
        return (
            f"Port {port} on {host} is taken. Stop what uses it, or choose another one with {flag} "
            f"or {variable} (0 takes a free one)."
        )
    if error.errno == errno.EACCES:
        return f"Port {port} may not be opened by this user. Choose one above 1023 with {flag} or {variable}."
    return _no_address(host, error)


def port_of(opened: socket.socket) -> int:
    """The port a socket got."""
    return int(opened.getsockname()[1])


def place(host: str, port: int) -> str:
    """Host and port as an address holds them."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def pem(path: Path) -> bytes:
    """The content of a file that TLS needs.

    Raises:
        StartError: it cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise StartError(
            f"{path} cannot be read ({error.strerror}). Check TOOLFAULT_TLS_CERTIFICATE and "
            "TOOLFAULT_TLS_KEY."
        ) from None
