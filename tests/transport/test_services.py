"""gRPC, AWS and the clients of model providers: real clients at loopback servers."""

import asyncio
import ssl
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import NamedTuple

import anthropic
import botocore.exceptions
import botocore.session
import grpc
import httpx2
import openai
import pytest
from botocore.config import Config
from google import genai

# outcome, code, transient, retry_after, effect of a tool that writes
NEVER_SENT = BUSY = ("failed", "UNAVAILABLE", True, None, "none")
RATE_LIMITED = ("failed", "RATE_LIMITED", True, None, "none")
BROKEN = ("failed", "UNAVAILABLE", False, None, "unknown")
UNTRUSTED = ("failed", "UNAVAILABLE", False, None, "none")
TIMED_OUT = ("timed_out", "UNAVAILABLE", False, None, "unknown")
INVALID = ("failed", "INVALID_ARGUMENT", False, None, "none")
DENIED = ("failed", "PERMISSION_DENIED", False, None, "none")
NOT_FOUND = ("failed", "NOT_FOUND", False, None, "none")
CONFLICT = ("failed", "CONFLICT", False, None, "none")
BUG = ("failed", "INTERNAL", False, None, "unknown")

KEY = "sk-" + "test-not-a-key"


def caught(send, *arguments):
    with pytest.raises(Exception) as failure:  # noqa: PT011 - whichever the client raises
        send(*arguments)
    return failure.value


# --- gRPC ----------------------------------------------------------------------------------------


class Anything(grpc.GenericRpcHandler):
    """Ends a call with the status its method is named after."""

    def service(self, call):
        code = grpc.StatusCode[call.method.rpartition("/")[2]]
        told = "Exception: at com.supplier.Db jdbc:postgresql"
        return grpc.unary_unary_rpc_method_handler(lambda _, context: context.abort(code, told))


@pytest.fixture(scope="module")
def rpc():
    with ThreadPoolExecutor(2) as workers:
        server = grpc.server(workers, handlers=(Anything(),))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        yield f"127.0.0.1:{port}"
        server.stop(None).wait()


def with_grpc(address, method, options=(), request=b""):
    with grpc.insecure_channel(address, options=options) as channel:
        channel.unary_unary(f"/booking/{method}")(request, timeout=5)


def with_grpc_aio(address, method):
    async def send():
        async with grpc.aio.insecure_channel(address) as channel:
            await channel.unary_unary(f"/booking/{method}")(b"", timeout=5)

    asyncio.run(send())


GRPC = {
    "CANCELLED": BROKEN,
    "UNKNOWN": BUG,
    "INVALID_ARGUMENT": INVALID,
    "DEADLINE_EXCEEDED": TIMED_OUT,
    "NOT_FOUND": NOT_FOUND,
    "ALREADY_EXISTS": CONFLICT,
    "PERMISSION_DENIED": DENIED,
    "UNAUTHENTICATED": DENIED,
    "RESOURCE_EXHAUSTED": RATE_LIMITED,
    "FAILED_PRECONDITION": CONFLICT,
    "ABORTED": CONFLICT,
    "OUT_OF_RANGE": INVALID,
    "UNIMPLEMENTED": BUG,
    "INTERNAL": BUG,
    "UNAVAILABLE": BROKEN,
    "DATA_LOSS": BUG,
}


@pytest.mark.parametrize("code", GRPC)
@pytest.mark.parametrize("send", [with_grpc, with_grpc_aio])
def test_a_status_of_grpc(send, code, rpc, verdict):
    assert verdict(caught(send, rpc, code)) == GRPC[code]


def test_the_table_names_every_status_of_grpc():
    assert {code.name for code in grpc.StatusCode} - {"OK"} == set(GRPC)


@pytest.mark.parametrize("send", [with_grpc, with_grpc_aio])
def test_grpc_finds_no_connection(send, web, verdict):
    assert verdict(caught(send, f"127.0.0.1:{web.refused_port}", "OK")) == NEVER_SENT
    assert verdict(caught(send, "booking.invalid:443", "OK")) == NEVER_SENT


def test_the_time_of_grpc_ran_out(web, verdict):
    def send():
        with grpc.insecure_channel(f"127.0.0.1:{web.silent_port}") as channel:
            channel.unary_unary("/booking/OK")(b"", timeout=0.1)

    assert verdict(caught(send)) == TIMED_OUT


def test_a_size_limit_of_grpc_is_no_rate(rpc, verdict):
    options = [("grpc.max_send_message_length", 10)]

    error = caught(with_grpc, rpc, "OK", options, b"x" * 11)

    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert verdict(error) == BUG


# --- model providers -----------------------------------------------------------------------------

MESSAGES = [{"role": "user", "content": "hello"}]
ONCE = {"api_key": KEY, "max_retries": 0, "timeout": 0.3}


@pytest.fixture(scope="module")
def sdk():
    """The clients, made once: their TLS set-up takes longer than a call."""
    trust = ssl.create_default_context()
    with (
        openai.OpenAI(http_client=httpx2.Client(verify=trust), **ONCE) as for_openai,
        anthropic.Anthropic(http_client=httpx2.Client(verify=trust), **ONCE) as for_anthropic,
        genai.Client(api_key=KEY) as for_genai,
    ):
        yield Sdk(trust, for_openai, for_anthropic, for_genai)


class Sdk(NamedTuple):
    trust: ssl.SSLContext
    openai: openai.OpenAI
    anthropic: anthropic.Anthropic
    genai: genai.Client


def with_openai(sdk, url):
    client = sdk.openai.with_options(base_url=url)
    client.chat.completions.create(model="m", messages=MESSAGES)


def with_anthropic(sdk, url):
    client = sdk.anthropic.with_options(base_url=url)
    client.messages.create(model="m", max_tokens=9, messages=MESSAGES)


def with_genai(sdk, url):
    options = {"http_options": {"base_url": url, "timeout": 300}}
    sdk.genai.models.generate_content(model="m", contents="hello", config=options)


def with_async_openai(sdk, url):
    async def send():
        http = httpx2.AsyncClient(verify=sdk.trust)
        async with openai.AsyncOpenAI(base_url=url, http_client=http, **ONCE) as client:
            await client.chat.completions.create(model="m", messages=MESSAGES)

    asyncio.run(send())


def with_async_anthropic(sdk, url):
    async def send():
        http = httpx2.AsyncClient(verify=sdk.trust)
        async with anthropic.AsyncAnthropic(base_url=url, http_client=http, **ONCE) as client:
            await client.messages.create(model="m", max_tokens=9, messages=MESSAGES)

    asyncio.run(send())


def with_async_genai(sdk, url):
    async def send():
        options = {"base_url": url, "timeout": 300}
        async with genai.Client(api_key=KEY, http_options=options).aio as client:
            await client.models.generate_content(model="m", contents="hello")

    asyncio.run(send())


MODELS = {
    "refused": NEVER_SENT,
    "no-such-name": NEVER_SENT,
    "silent": NEVER_SENT,
    "untrusted": UNTRUSTED,
    "hangs": TIMED_OUT,
    "resets": BROKEN,
    "closes": BROKEN,
    "400": INVALID,
    "401": DENIED,
    "403": DENIED,
    "404": NOT_FOUND,
    "408": TIMED_OUT,
    "409": CONFLICT,
    "422": INVALID,
    "429-after-7": ("failed", "RATE_LIMITED", True, 7.0, "none"),
    "429-on-a-date": ("failed", "RATE_LIMITED", True, 90.0, "none"),
    "500": BUG,
    "502": BROKEN,
    "503": BUSY,
    "504": TIMED_OUT,
    "529": BUSY,
}


@pytest.mark.parametrize("situation", MODELS)
@pytest.mark.parametrize("send", [with_openai, with_anthropic, with_genai])
def test_a_call_of_a_model_that_fails(send, situation, sdk, web, verdict):
    assert verdict(caught(send, sdk, web.url(situation))) == MODELS[situation]


@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")
@pytest.mark.parametrize(
    ("send", "situation"),
    [
        *product(
            [with_async_openai, with_async_anthropic],
            ["refused", "hangs", "resets", "403", "429-after-7"],
        ),
        # not "refused": it then sleeps and tries again whatever one says
        *product([with_async_genai], ["hangs", "403", "429-after-7"]),
    ],
)
def test_an_async_call_of_a_model_that_fails(send, situation, sdk, web, verdict):
    assert verdict(caught(send, sdk, web.url(situation))) == MODELS[situation]


def test_a_spent_quota_does_not_fill_by_waiting(sdk, web, verdict, monkeypatch):
    body = b'{"error": {"code": "insufficient_quota", "message": "You exceeded your quota"}}'
    monkeypatch.setattr(web.server, "body", body)

    error = caught(with_openai, sdk, web.url("429"))

    assert verdict(error) == ("failed", "RATE_LIMITED", False, None, "none")


# --- AWS -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def aws():
    """Makes the call of a DynamoDB client whose endpoint is the address."""
    session = botocore.session.Session()
    session.set_credentials("test", "test")
    config = Config(connect_timeout=0.15, read_timeout=0.15, retries={"total_max_attempts": 1})

    def send(url):
        client = session.create_client(
            "dynamodb", region_name="eu-west-1", endpoint_url=url, config=config
        )
        try:
            client.get_item(TableName="room", Key={"id": {"S": "1"}})
        finally:
            client.close()

    return send


AWS = {
    "refused": NEVER_SENT,
    "no-such-name": NEVER_SENT,
    "silent": NEVER_SENT,
    "untrusted": UNTRUSTED,
    "hangs": TIMED_OUT,
    "resets": BROKEN,
    "closes": BROKEN,
}


@pytest.mark.parametrize("situation", AWS)
def test_a_connection_to_aws_that_fails(situation, aws, web, verdict):
    assert verdict(caught(aws, web.url(situation))) == AWS[situation]


AWS_CODES = {
    ("400", "ThrottlingException"): RATE_LIMITED,
    ("400", "ProvisionedThroughputExceededException"): RATE_LIMITED,
    ("503-after-7", "SlowDown"): ("failed", "RATE_LIMITED", True, 7.0, "none"),
    ("400", "ConditionalCheckFailedException"): CONFLICT,
    ("400", "TransactionInProgressException"): CONFLICT,
    ("400", "ResourceNotFoundException"): NOT_FOUND,
    ("400", "AccessDeniedException"): DENIED,
    ("400", "UnrecognizedClientException"): DENIED,
    ("400", "ExpiredTokenException"): DENIED,
    ("400", "RequestTimeout"): TIMED_OUT,
    ("400", "ValidationException"): INVALID,  # by the status, as all below
    ("404", "Whatever"): NOT_FOUND,
    ("429-after-7", "Whatever"): ("failed", "RATE_LIMITED", True, 7.0, "none"),
    ("429-on-a-date", "Whatever"): ("failed", "RATE_LIMITED", True, 90.0, "none"),
    ("500", "InternalServerError"): BUG,
    ("502", "Whatever"): BROKEN,
    ("503", "Whatever"): BUSY,
    ("504", "Whatever"): TIMED_OUT,
}


@pytest.mark.parametrize("answer", AWS_CODES)
def test_an_error_code_of_aws(answer, aws, web, verdict, monkeypatch):
    status, code = answer
    body = f'{{"__type": "{code}", "message": "jdbc:postgresql"}}'.encode()
    monkeypatch.setattr(web.server, "body", body)

    error = caught(aws, web.url(status))

    assert error.response["Error"]["Code"] == code
    assert verdict(error) == AWS_CODES[answer]


def test_no_credentials_for_aws_means_nothing_was_sent(web, verdict, monkeypatch):
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/no/such/file")
    client = botocore.session.Session().create_client(
        "dynamodb", region_name="eu-west-1", endpoint_url=web.url("200")
    )

    error = caught(client.list_tables)

    assert type(error) is botocore.exceptions.NoCredentialsError
    assert verdict(error) == DENIED
