"""Slow and silent connections end; the others are served meanwhile."""

import asyncio
import contextlib
import socket
from contextlib import asynccontextmanager

import pytest
import uvicorn

from toolfault.connections import TimedProtocol


class Hasty(TimedProtocol):
    header_seconds = 0.5
    body_seconds = 0.5


async def _echo(scope, receive, send):
    """Answers with the body, when it is whole."""
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body, more = body + message["body"], message["more_body"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body + b"!"})


@asynccontextmanager
async def _serving(protocol, idle_seconds):
    listener = socket.create_server(("127.0.0.1", 0))
    web = uvicorn.Server(
        uvicorn.Config(
            _echo,
            http=protocol,
            timeout_keep_alive=idle_seconds,
            lifespan="off",
            log_config=None,
            server_header=False,
            date_header=False,
        )
    )
    serving = asyncio.create_task(web._serve([listener]))
    try:
        yield listener.getsockname()[1], web.server_state.connections
    finally:
        web.should_exit = True
        await serving
        listener.close()


@pytest.fixture
async def hasty():
    async with _serving(Hasty, 1) as server:
        yield server


@pytest.fixture
async def patient():
    """With the limits of the service, which no test reaches."""
    async with _serving(TimedProtocol, 60) as server:
        yield server


@asynccontextmanager
async def _connected(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def _trickle(port, first, rest):
    """Sends `first`, then `rest` byte by byte; what came back until the connection was ended."""
    async with _connected(port) as (reader, writer):
        writer.write(first)
        with contextlib.suppress(ConnectionError):
            for byte in rest:
                if reader.at_eof() or writer.is_closing():
                    break
                writer.write(bytes([byte]))
                await asyncio.sleep(0.1)
            return await reader.read()
        return b""


HEAD = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n!\r\n0\r\n\r\n"
SLOW = {
    "nothing at all": (b"", b""),
    "headers byte by byte": (b"GET / HTTP/1.1\r\n", b"x" * 1000),
    "a body byte by byte": (HEAD, b"x" * 999),
}


@pytest.mark.parametrize("way", SLOW)
async def test_two_hundred_slow_connections_end_and_another_is_served_meanwhile(hasty, way):
    port, connections = hasty
    slow = [asyncio.create_task(_trickle(port, *SLOW[way])) for _ in range(200)]
    await asyncio.sleep(0.1)

    async with _connected(port) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        assert (await reader.read()).endswith(b"!\r\n0\r\n\r\n")

    assert set(await asyncio.gather(*slow)) == {b""}
    while connections:
        await asyncio.sleep(0.01)


async def test_an_idle_connection_ends_after_its_answer(hasty):
    answer = await _trickle(hasty[0], b"GET / HTTP/1.1\r\nhost: x\r\n\r\n", b"")
    assert answer == ANSWER


async def test_a_second_request_byte_by_byte_ends_too(hasty):
    head = b"GET / HTTP/1.1\r\nhost: x\r\n"
    answer = await _trickle(hasty[0], head + b"\r\n" + head, b"x" * 1000)
    assert answer in (b"", ANSWER)  # the end of a connection may overtake what was sent over it


async def test_a_steady_client_may_stay_longer_than_any_of_the_limits(hasty):
    async with _connected(hasty[0]) as (reader, writer):
        for _ in range(8):
            writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            assert await reader.readexactly(len(ANSWER)) == ANSWER
            await asyncio.sleep(0.2)


async def test_requests_that_come_at_once_are_answered_one_after_the_other(patient):
    one = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc"
    async with _connected(patient[0]) as (reader, writer):
        writer.write(one * 3 + one[:-1])
        for _ in range(3):
            assert (await reader.readuntil(b"!")).endswith(b"abc!")
        writer.write(one[-1:])
        assert (await reader.readuntil(b"!")).endswith(b"abc!")
