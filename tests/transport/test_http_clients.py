"""Every HTTP client at every address; what its real exception means."""

import asyncio
import errno
import http.client
import smtplib
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request

import aiohttp
import httpx
import pytest
import requests
import urllib3

# outcome, code, transient, retry_after, effect of a tool that writes
NEVER_SENT = ("failed", "UNAVAILABLE", True, None, "none")
BROKEN = ("failed", "UNAVAILABLE", False, None, "unknown")
TIMED_OUT = ("timed_out", "UNAVAILABLE", False, None, "unknown")
UNTRUSTED = ("failed", "UNAVAILABLE", False, None, "none")
DENIED = ("failed", "PERMISSION_DENIED", False, None, "none")
BUG = ("failed", "INTERNAL", False, None, "unknown")

CONNECTIONS = {
    "refused": NEVER_SENT,
    "no-such-name": NEVER_SENT,
    "silent": NEVER_SENT,
    "untrusted": UNTRUSTED,
    "hangs": TIMED_OUT,
    "resets": BROKEN,
    "closes": BROKEN,
    "breaks-off": BROKEN,
}
STATUSES = {
    "400": ("failed", "INVALID_ARGUMENT", False, None, "none"),
    "401": DENIED,
    "402": BUG,
    "403": DENIED,
    "404": ("failed", "NOT_FOUND", False, None, "none"),
    "405": BUG,
    "408": TIMED_OUT,
    "409": ("failed", "CONFLICT", False, None, "none"),
    "410": ("failed", "NOT_FOUND", False, None, "none"),
    "412": ("failed", "CONFLICT", False, None, "none"),
    "422": ("failed", "INVALID_ARGUMENT", False, None, "none"),
    "423": ("failed", "CONFLICT", False, None, "none"),
    "429": ("failed", "RATE_LIMITED", True, None, "none"),
    "429-after-7": ("failed", "RATE_LIMITED", True, 7.0, "none"),
    "429-on-a-date": ("failed", "RATE_LIMITED", True, 90.0, "none"),
    "500": BUG,
    "501": BUG,
    "502": BROKEN,
    "503": NEVER_SENT,
    "503-after-7": ("failed", "UNAVAILABLE", True, 7.0, "none"),
    "503-on-a-date": ("failed", "UNAVAILABLE", True, 90.0, "none"),
    "504": TIMED_OUT,
    "504-after-7": ("timed_out", "UNAVAILABLE", False, 7.0, "unknown"),
    "529": NEVER_SENT,
}

CONNECT, READ = 0.15, 0.15  # s
TRUST = ssl.create_default_context()  # once: it is what takes long in a new client


def with_httpx(url):
    with httpx.Client(verify=TRUST, timeout=httpx.Timeout(READ, connect=CONNECT)) as client:
        client.post(url).raise_for_status()


def with_async_httpx(url):
    async def send():
        timeout = httpx.Timeout(READ, connect=CONNECT)
        async with httpx.AsyncClient(verify=TRUST, timeout=timeout) as client:
            (await client.post(url)).raise_for_status()

    asyncio.run(send())


def with_requests(url):
    with requests.Session() as session:
        session.post(url, timeout=(CONNECT, READ)).raise_for_status()


def with_aiohttp(url):
    async def send():
        timeout = aiohttp.ClientTimeout(sock_connect=CONNECT, sock_read=READ)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(url) as answer,
        ):
            answer.raise_for_status()
            await answer.read()

    asyncio.run(send())


def with_urllib(url):
    try:
        with urllib.request.urlopen(url, data=b"", timeout=READ) as answer:  # noqa: S310
            answer.read()
    except urllib.error.HTTPError as error:
        error.close()
        raise


def with_urllib3(url):
    timeout = urllib3.Timeout(connect=CONNECT, read=READ)
    with urllib3.PoolManager(timeout=timeout, retries=False) as pool:
        pool.request("POST", url)


CLIENTS = [with_httpx, with_async_httpx, with_requests, with_aiohttp, with_urllib]
NO_CONNECT_TIMEOUT = {(with_urllib, "silent")}  # one timeout for both: nobody can tell


def caught(send, *arguments):
    with pytest.raises(Exception) as failure:  # noqa: PT011 - whichever the client raises
        send(*arguments)
    return failure.value


@pytest.mark.parametrize("situation", CONNECTIONS)
@pytest.mark.parametrize("send", [*CLIENTS, with_urllib3])
def test_a_connection_that_fails(send, situation, web, verdict):
    error = caught(send, web.url(situation))

    expected = TIMED_OUT if (send, situation) in NO_CONNECT_TIMEOUT else CONNECTIONS[situation]
    assert verdict(error) == expected


@pytest.mark.parametrize("situation", STATUSES)
@pytest.mark.parametrize("send", CLIENTS)
def test_a_status_that_fails(send, situation, web, verdict):
    assert verdict(caught(send, web.url(situation))) == STATUSES[situation]


# --- pools ---------------------------------------------------------------------------------------


def test_no_free_connection_in_the_pool_of_httpx(web, verdict):
    timeout, one = httpx.Timeout(5, pool=0.1), httpx.Limits(max_connections=1)
    with (
        httpx.Client(timeout=timeout, limits=one) as client,
        client.stream("POST", web.url("200")),
    ):
        assert verdict(caught(client.post, web.url("200"))) == NEVER_SENT


def test_no_free_connection_in_the_pool_of_aiohttp(web, verdict):
    async def send():
        timeout, one = aiohttp.ClientTimeout(connect=0.1), aiohttp.TCPConnector(limit=1)
        async with aiohttp.ClientSession(timeout=timeout, connector=one) as session:
            hanging = asyncio.create_task(session.post(web.url("hangs")))
            await asyncio.sleep(0)
            try:
                await session.post(web.url("200"))
            finally:
                hanging.cancel()

    assert verdict(caught(asyncio.run, send())) == NEVER_SENT


def test_no_free_connection_in_the_pool_of_urllib3(web, verdict):
    with urllib3.HTTPConnectionPool("127.0.0.1", web.port, maxsize=1, block=True) as pool:
        held = pool.urlopen("POST", "/200", preload_content=False)
        error = caught(lambda: pool.urlopen("POST", "/200", pool_timeout=0.1))
        held.close()

    assert verdict(error) == NEVER_SENT


# --- what is special about one of them -----------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "expected"), [("503", NEVER_SENT), ("500", BUG), ("502", BROKEN)]
)
def test_the_last_status_decides_after_urllib3_gave_up_repeating(status, expected, web, verdict):
    repeating = urllib3.Retry(total=1, status_forcelist=[int(status)], backoff_factor=0)
    with requests.Session() as session:
        session.mount("http://", requests.adapters.HTTPAdapter(max_retries=repeating))
        error = caught(session.get, web.url(status))

    assert type(error) is requests.exceptions.RetryError
    assert verdict(error) == expected


def test_the_total_time_of_aiohttp_ran_out(web, verdict):
    async def send():
        timeout = aiohttp.ClientTimeout(total=0.1)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            await session.post(web.url("hangs"))

    assert verdict(caught(asyncio.run, send())) == TIMED_OUT


@pytest.mark.parametrize(
    "error",
    [
        requests.exceptions.ConnectionError("no more than words"),
        urllib.error.URLError("no more than words"),
        httpx.ReadError("reset"),
        httpx.WriteError("reset"),
        aiohttp.ServerDisconnectedError(),
    ],
)
def test_a_bare_exception_of_the_connection_family_knows_no_effect(error, verdict):
    assert verdict(error) == BROKEN


@pytest.mark.parametrize(
    "send",
    [
        lambda url: httpx.get("ftp://127.0.0.1/"),
        lambda url: httpx.get("http://127.0.0.1:port"),
        lambda url: requests.get("nonsense", timeout=5),
        lambda url: requests.get(url, timeout=5).json()["output"],
        lambda url: httpx.get(url).json()["output"],
    ],
)
def test_a_mistake_of_the_tools_own_is_a_bug(send, web, verdict):
    assert verdict(caught(send, web.url("200"))) == BUG


# --- standard library ----------------------------------------------------------------------------


def test_a_refused_socket(web, verdict):
    error = caught(socket.create_connection, ("127.0.0.1", web.refused_port))

    assert verdict(error) == NEVER_SENT


def test_a_name_that_does_not_resolve(verdict):
    assert verdict(caught(socket.create_connection, ("booking.invalid", 80))) == NEVER_SENT


async def test_asyncio_refused(web, verdict):
    with pytest.raises(OSError) as failure:  # noqa: PT011
        await asyncio.open_connection("127.0.0.1", web.refused_port)

    assert verdict(failure.value) == NEVER_SENT


async def test_asyncio_refused_at_every_address_of_a_name(web, verdict, monkeypatch):
    there = [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"127.0.0.{host}", web.refused_port))
        for host in (1, 2)
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: there)
    with pytest.raises(OSError, match="Multiple exceptions") as failure:
        await asyncio.open_connection("booking.internal", web.refused_port)

    assert verdict(failure.value) == NEVER_SENT


def test_a_network_that_is_not_there_knows_no_effect(verdict):
    assert verdict(OSError(errno.ENETUNREACH, "Network is unreachable")) == BROKEN


def test_a_program_that_outran_its_time(verdict):
    program = [sys.executable, "-c", "import time; time.sleep(20)"]
    error = caught(lambda: subprocess.run(program, timeout=0.01, check=True))

    assert type(error) is subprocess.TimeoutExpired
    assert verdict(error) == TIMED_OUT


def test_a_mail_server_that_says_nothing_or_does_not_know_us(stub, verdict):
    error = caught(lambda: smtplib.SMTP("127.0.0.1", stub(None), timeout=READ))

    assert type(error) is smtplib.SMTPServerDisconnected
    assert verdict(error) == BROKEN
    assert verdict(smtplib.SMTPAuthenticationError(535, b"no")) == DENIED


async def test_asyncio_ran_out_of_time(verdict):
    with pytest.raises(TimeoutError) as failure:
        async with asyncio.timeout(0):
            await asyncio.sleep(1)

    assert verdict(failure.value) == TIMED_OUT


async def test_asyncio_read_less_than_promised(stub, verdict):
    reader, writer = await asyncio.open_connection("127.0.0.1", stub(b"half"))
    writer.write(b"?")
    with pytest.raises(asyncio.IncompleteReadError) as failure:
        await reader.readexactly(8)
    writer.close()
    await writer.wait_closed()

    assert verdict(failure.value) == BROKEN


@pytest.mark.parametrize("situation", ["resets", "closes", "breaks-off", "hangs"])
def test_http_client(situation, web, verdict):
    connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=READ)

    def send():
        connection.request("POST", f"/{situation}")
        with connection.getresponse() as answer:
            answer.read()

    error = caught(send)
    connection.close()

    assert verdict(error) == CONNECTIONS[situation]


def test_a_line_that_is_no_http(stub, verdict):
    connection = http.client.HTTPConnection("127.0.0.1", stub(b"220 mail ready\r\n"), timeout=5)

    def send():
        connection.request("GET", "/")
        connection.getresponse()

    error = caught(send)
    connection.close()

    assert verdict(error) == BROKEN


def test_a_certificate_nobody_trusts(web, verdict):
    def connect():
        with socket.create_connection(("127.0.0.1", web.tls_port)) as plain:
            ssl.create_default_context().wrap_socket(plain, server_hostname="127.0.0.1")

    assert verdict(caught(connect)) == UNTRUSTED


def test_tls_with_a_server_that_speaks_none(web, verdict):
    def connect():
        with socket.create_connection(("127.0.0.1", web.port)) as plain:
            ssl.create_default_context().wrap_socket(plain, server_hostname="127.0.0.1")

    assert verdict(caught(connect)) == BROKEN


@pytest.mark.parametrize("path", ["/no/such/file", "/"])
def test_a_file_of_the_tools_own_is_not_the_other_side(path, verdict):
    assert verdict(caught(open, path)) == BUG
