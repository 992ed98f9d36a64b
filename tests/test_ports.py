"""Ports open, or a sentence says which one does not and what to change."""

import asyncio
import socket

import pytest

from toolfault import ports
from toolfault.settings import Settings, StartError


def test_port_0_takes_a_free_one():
    with ports.listen(Settings(web_port=0), "web") as opened:
        assert ports.port_of(opened) > 0


def test_a_taken_port_is_named_with_its_flag():
    with ports.listen(Settings(http_port=0), "http") as first:
        port = ports.port_of(first)

        with pytest.raises(StartError) as caught:
            ports.listen(Settings(http_port=port), "http")

    assert str(caught.value) == (
        f"Port {port} on 127.0.0.1 is taken. Stop what uses it, or choose another one with "
        "--http-port or TOOLFAULT_HTTP_PORT (0 takes a free one)."
    )


@pytest.mark.parametrize("host", ["192.0.2.1", "no.such.host.invalid"])
def test_an_address_that_is_not_ours_is_named_with_its_flag(host):
    with pytest.raises(StartError, match=f"The address {host} cannot be used .*--host"):
        ports.listen(Settings(host=host, grpc_port=0), "grpc")


@pytest.mark.parametrize(
    ("host", "alone"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True),
     ("0.0.0.0", False), ("::", False), ("10.0.0.1", False), ("host.example", False)],  # noqa: S104
)  # fmt: skip
def test_only_loopback_is_reached_by_this_machine_alone(host, alone):
    assert ports.is_loopback(host) is alone


def test_an_ipv6_address_is_bracketed():
    assert ports.place("::1", 8700) == "[::1]:8700"
    assert ports.place("127.0.0.1", 8700) == "127.0.0.1:8700"


def test_a_file_for_tls_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(StartError, match=r"key\.pem cannot be read"):
        ports.pem(tmp_path / "key.pem")


async def test_a_small_answer_is_sent_at_once():
    answered = asyncio.get_running_loop().create_future()

    async def answer(_, writer):
        sent_by = writer.get_extra_info("socket")
        answered.set_result(sent_by.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    opened = ports.listen(Settings(web_port=0), "web")
    async with await asyncio.start_server(answer, sock=opened):
        _, writer = await asyncio.open_connection("127.0.0.1", ports.port_of(opened))
        assert await answered != 0
        writer.close()
        await writer.wait_closed()
