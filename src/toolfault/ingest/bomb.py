"""Decompression bombs, to send at one's own service: `python -m toolfault.ingest.bomb URL`.

A receiver that unpacks without a limit is ended by one of these; ours answers 413 or 400. Shipped,
so that whoever runs the service can see it hold.
"""

from __future__ import annotations

import gzip
import sys
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator

_BLOCK = 1024 * 1024


def zeros(size: int) -> bytes:
    """A gzip body of about a thousandth of `size` that unpacks to `size` bytes."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = [packer.compress(bytes(_BLOCK)) for _ in range(size // _BLOCK)]
    return b"".join([*packed, packer.compress(bytes(size % _BLOCK)), packer.flush()])


def members(count: int) -> bytes:
    """A gzip body of empty members: little to unpack, and long to find that out."""
    return gzip.compress(b"", mtime=0) * count


def empty_spans(size: int) -> bytes:
    """An unpacked body of empty spans, each of two bytes and, once parsed, of a hundred."""
    spans = b"\x12\x00" * (size // 2)
    scope = b"\x12" + _varint(len(spans)) + spans
    return b"\x0a" + _varint(len(scope)) + scope


def _varint(number: int) -> bytes:
    told = bytearray()
    while number > 0x7F:
        told.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*told, number])


def bombs() -> Iterator[tuple[str, bytes, bool]]:
    """Name, body and whether it is gzip."""
    yield "1 GiB of zeros", zeros(1 << 30), True
    yield "200,000 empty gzip members", members(200_000), True
    yield "1 GiB of zeros, twice packed", gzip.compress(zeros(1 << 30)), True
    yield "16 MiB of empty spans", empty_spans(16 << 20), False


def main() -> None:
    """Send every bomb and print what came back; exit 1 if one of them was a 5xx or no answer."""
    url = (sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:4318").rstrip("/")
    if not url.startswith(("http://", "https://")):
        sys.exit("The address must begin with http:// or https://")
    statuses = {name: _send(f"{url}/v1/traces", body, packed) for name, body, packed in bombs()}
    for name, status in statuses.items():
        sys.stdout.write(f"{name}: {status or 'no answer'}\n")
    sys.exit(any(not 0 < status < 500 for status in statuses.values()))


def _send(url: str, body: bytes, packed: bool) -> int:
    headers = {"content-type": "application/x-protobuf"}
    if packed:
        headers["content-encoding"] = "gzip"
    request = urllib.request.Request(url, body, headers)  # noqa: S310 - scheme checked
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


if __name__ == "__main__":
    main()
