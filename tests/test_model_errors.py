"""Which failures of a model call pass by themselves: the providers' own clients raise them."""

import anthropic
import httpx
import httpx2
import openai
import pytest
from google import genai

from toolfault.model_errors import is_transient

ONCE = {"api_key": "sk-" + "test-not-a-key", "max_retries": 0}
ASK = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
SSE = {"Content-Type": "text/event-stream"}


def answering(answer):
    return httpx2.Client(transport=httpx2.MockTransport(answer))


def caught(send):
    with pytest.raises(Exception) as failure:  # noqa: PT011 - whichever the client raises
        send()
    return failure.value


def with_openai(answer, **options):
    client = openai.OpenAI(http_client=answering(answer), **ONCE)
    return caught(lambda: list(client.chat.completions.create(**ASK, **options)))


def with_anthropic(answer, **options):
    client = anthropic.Anthropic(http_client=answering(answer), **ONCE)
    return caught(lambda: list(client.messages.create(max_tokens=9, **ASK, **options)))


def with_genai(status):
    return genai.errors.APIError(status, {"error": {"code": status, "status": "X"}})


#: Worked out by hand: what passes by itself, and what only burns quota when it is repeated.
STATUSES = {
    400: False, 401: False, 403: False, 404: False, 408: True, 409: True, 413: False, 422: False,
    429: True, 500: True, 501: False, 502: True, 503: True, 504: True, 529: True,
}  # fmt: skip


@pytest.mark.parametrize("status", STATUSES)
def test_a_status_of_a_provider(status):
    def answer(request):
        return httpx2.Response(status, json={"error": {"message": "no", "type": "x", "code": None}})

    assert is_transient(with_openai(answer)) is STATUSES[status]
    assert is_transient(with_anthropic(answer)) is STATUSES[status]
    assert is_transient(with_genai(status)) is STATUSES[status]


def test_a_spent_quota_is_a_429_that_waiting_does_not_fill():
    def answer(request):
        return httpx2.Response(429, json={"error": {"code": "insufficient_quota", "message": "no"}})

    assert not is_transient(with_openai(answer))


BROKEN = {
    "ConnectError": True, "ConnectTimeout": True, "PoolTimeout": True, "ReadError": True,
    "ReadTimeout": True, "RemoteProtocolError": True,
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_connection_that_breaks(name):
    def answer(request):
        raise getattr(httpx2, name)("no")

    assert is_transient(with_openai(answer)) is BROKEN[name]
    assert is_transient(with_anthropic(answer)) is BROKEN[name]
    assert is_transient(getattr(httpx, name)("no")) is BROKEN[name]


@pytest.mark.parametrize(
    ("kind", "passes"),
    [("overloaded_error", True), ("rate_limit_error", True), ("invalid_request_error", False)],
)
def test_anthropic_tells_an_overload_inside_a_stream_whose_status_is_200(kind, passes):
    event = f'event: error\ndata: {{"type": "error", "error": {{"type": "{kind}"}}}}\n\n'

    error = with_anthropic(lambda _: httpx2.Response(200, headers=SSE, text=event), stream=True)

    assert error.status_code == 200
    assert is_transient(error) is passes


@pytest.mark.parametrize(("kind", "passes"), [("server_error", True), ("invalid_request", False)])
def test_openai_tells_a_fault_inside_a_stream_whose_status_is_200(kind, passes):
    event = f'data: {{"error": {{"type": "{kind}", "message": "no"}}}}\n\n'

    error = with_openai(lambda _: httpx2.Response(200, headers=SSE, text=event), stream=True)

    assert is_transient(error) is passes


def test_a_bug_and_a_cancellation_do_not_pass():
    assert not is_transient(KeyError("choices"))
    assert not is_transient(KeyboardInterrupt())
