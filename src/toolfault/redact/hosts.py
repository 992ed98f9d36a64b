"""Which host names and addresses are internal."""

from __future__ import annotations

import ipaddress
from functools import lru_cache

from toolfault.redact.spans import words

_INTERNAL_ENDS = words(
    "internal local corp lan intranet intra localdomain svc private priv consul home localnet"
)
_INTERNAL_LABELS = words("internal corp intranet intra lan svc private priv int vpn")
_ANY_INTERNAL = _INTERNAL_ENDS | _INTERNAL_LABELS | {"arpa"}
_PUBLIC_ENDS = words(
    "com net org io dev cloud co de uk eu app ai fr nl ch at it es pl se no fi dk be jp cn in br au ca us info biz "
    "tech systems services gov edu mil me tv xyz"
)
#: dotted names of programs and files, not of hosts
_NOT_HOSTS = words(
    "threading.local asyncio.local thread.local env.local self.local werkzeug.local this.local"
)
_LOOPBACK = words("localhost localhost.localdomain ip6-localhost host example")


@lru_cache(maxsize=1024)
def is_internal_name(name: str) -> bool:
    """Whether a dotted, lower-case name is one of a private network (`db.internal`, `x.corp.acme.com`)."""
    name = name.strip(".-_")
    labels = name.split(".")
    if (
        _ANY_INTERNAL.isdisjoint(labels)
        or len(labels) < 2
        or name in _NOT_HOSTS
        or name in _LOOPBACK
        or "" in labels
    ):
        return False
    if labels[-1] in _INTERNAL_ENDS or labels[-2:] == ["home", "arpa"]:
        return True
    return (
        len(labels) > 2
        and not _INTERNAL_LABELS.isdisjoint(labels[:-1])
        and labels[-1] in _PUBLIC_ENDS
    )


def is_internal_host(name: str) -> bool:
    """The same where a host is certainly meant: a name without a dot is internal too."""
    name = name.strip(".").lower()
    if "." in name:
        return is_internal_name(name)
    return name not in _LOOPBACK and len(name) > 1 and any(c.isalpha() for c in name)


def is_private_v6(text: str) -> bool:
    """Unique local and link-local addresses."""
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return address.is_link_local or (int(address) >> 121) == 0b1111110


def is_card(text: str) -> bool:
    """A payment card's prefix, length and Luhn sum."""
    digits = [int(c) for c in text if c.isdigit()]
    return 13 <= len(digits) <= 19 and _is_issued(digits) and _luhn(digits)


def _is_issued(digits: list[int]) -> bool:
    number = "".join(map(str, digits))
    two, three, four = int(number[:2]), int(number[:3]), int(number[:4])
    size = len(digits)
    if two in (34, 37):
        return size == 15
    if 51 <= two <= 55 or 2221 <= four <= 2720:
        return size == 16
    if two in (36, 38, 39) or 300 <= three <= 305:
        return size in (14, 16)
    if number[0] == "4":
        return size in (13, 16, 19)
    return (
        four == 6011 or two in (62, 64, 65, 35) or two in (50, 56, 57, 58, 63, 67, 68)
    ) and size >= 15


def _luhn(digits: list[int]) -> bool:
    total = 0
    for place, digit in enumerate(reversed(digits)):
        doubled = digit * 2 if place % 2 else digit
        total += doubled - 9 if doubled > 9 else doubled
    return total % 10 == 0
