"""HTTP/2 pings on the gRPC port: connections that are kept open without calls, and clients that overdo it."""

import asyncio
from contextlib import asynccontextmanager

from tests.ingest.conftest import serving

from toolfault.ingest import grpc as ingest_grpc

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_SETTINGS, _PING, _GOAWAY = 4, 6, 7
_ACK = 1
_ENHANCE_YOUR_CALM = 11
_INTERVAL = "grpc.http2.min_ping_interval_without_data_ms"


class Pings:
    """A connection of the client's that carries nothing but pings."""

    def __init__(self, reader, writer):
        self._reader, self._writer = reader, writer

    def send(self, kind, *payloads):
        """A frame for each payload, all in one piece."""
        heads = (len(payload).to_bytes(3) + bytes((kind, 0)) + bytes(4) for payload in payloads)
        self._writer.write(b"".join(map(bytes.__add__, heads, payloads)))

    async def receive(self, *kinds):
        """The next frame of one of these kinds: kind, flags and payload."""
        while True:
            head = await self._reader.readexactly(9)
            payload = await self._reader.readexactly(int.from_bytes(head[:3]))
            if head[3] in kinds:
                return head[3], head[4], payload

    async def ping(self, number):
        """A ping's answer."""
        self.send(_PING, number.to_bytes(8))
        return await self.receive(_PING, _GOAWAY)


@asynccontextmanager
async def _connected(service):
    reader, writer = await asyncio.open_connection("127.0.0.1", service.grpc_port)
    writer.write(_PREFACE)
    pings = Pings(reader, writer)
    pings.send(_SETTINGS, b"")
    try:
        yield pings
    finally:
        writer.close()


def test_collectors_may_ping_every_ten_seconds_without_a_call():
    told = dict(ingest_grpc.options())
    assert told[_INTERVAL] == 10_000
    assert told["grpc.keepalive_permit_without_calls"] == 1


async def test_pings_without_calls_are_answered_for_as_long_as_they_come(database_url, monkeypatch):
    quick = dict(ingest_grpc.options()) | {_INTERVAL: 100}  # ten seconds take too long here
    monkeypatch.setattr(ingest_grpc, "options", lambda _: list(quick.items()))
    async with serving(database_url) as service, _connected(service) as pings:
        for number in range(10):
            assert await pings.ping(number) == (_PING, _ACK, number.to_bytes(8))
            await asyncio.sleep(0.15)


async def test_too_many_pings_end_their_connection_and_no_other(service):
    async with _connected(service) as pings:
        # in one piece: the connection ends at once, and what is sent after that loses its answer
        pings.send(_PING, *(number.to_bytes(8) for number in range(10)))
        _, _, payload = await pings.receive(_GOAWAY)
        assert int.from_bytes(payload[4:8]) == _ENHANCE_YOUR_CALM
        assert payload[8:] == b"too_many_pings"
    assert await service.call("traces", b"") == b""
