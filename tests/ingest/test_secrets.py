"""Nothing secret reaches the database, wherever in a request it stands."""

import json

import pytest
from tests.ingest import otlp
from tests.ingest.hostile import KEYS, NOW

# Made up, and put together here, so that scanners of this file stay quiet.
SECRETS = {
    "an OpenAI key": "sk-" + "proj-" + "Tq8VnB2xLk7RzWm4" * 3,
    "an AWS key": "AKIA" + "QZ7XK3M5N2P4R6T8",
    "a GitHub token": "ghp_" + "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY2z4A",
    "a JWT": "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiJwcm9iZSJ9." + "c2lnbmF0dXJlLW9mLXByb2Jl",
    "a database password": "postgresql://app:" + "correct-horse-7" + "@db.example.com/main",
    "a password": "password=" + "Tr0ub4dor-and-3",
    "a bearer token": "Authorization: Bearer " + "dG9rZW4tb2YtcHJvYmUtMTIzNDU2",
    "a Slack hook": "https://hooks.slack.com/services/" + "T0PROBE00/B0PROBE00/x7Yk2Lq9Wm4Rz8Vn3Bt6",
    "a private key": "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEF\n" * 3 + "-----END PRIVATE KEY-----",
    "an e-mail address": "probe.person@" + "customer.example",
    "a card": "4111 1111 " + "1111 1111",
}  # fmt: skip
#: The part of each that must not be found.
CORES = {
    "an OpenAI key": "Tq8VnB2xLk7RzWm4", "an AWS key": "QZ7XK3M5N2P4R6T8",
    "a GitHub token": "aB3dE5fG7hJ9kL1mN2pQ", "a JWT": "eyJzdWIiOiJwcm9iZSJ9",
    "a database password": "correct-horse-7", "a password": "Tr0ub4dor-and-3",
    "a bearer token": "dG9rZW4tb2YtcHJvYmUt", "a Slack hook": "x7Yk2Lq9Wm4Rz8Vn3Bt6",
    "a private key": "MIIEvQIBADANBgkq", "an e-mail address": "probe.person",
    "a card": "1111 1111",
}  # fmt: skip
#: Public by their author's wish, as plain addresses; in any other text they are hidden there too.
PUBLIC = {"an e-mail address": {"toolfault.owner_contact"}}


@pytest.fixture(scope="module")
def planted(shared):
    """A database after every secret was sent in every place, in both encodings, over both transports."""
    for number, (name, secret) in enumerate(SECRETS.items()):
        for request, signal in _requests(secret, number, PUBLIC.get(name, set())):
            assert shared.call(signal, request.SerializeToString())[0].name == "OK"
    for number, secret in enumerate(SECRETS.values(), start=100):
        body = json.dumps(_json_logs(secret, number)).encode()
        assert (
            shared.post("/v1/logs", body, {"content-type": "application/json"}).status_code == 200
        )
    return shared


def _requests(secret, number, public):
    in_words = f"could not book, {secret} was refused"
    for position, text in enumerate(
        (secret, in_words, "x" * 4000 + " " + secret, f'{{"a": "{secret}"}}')
    ):
        ids = {"trace_id": (number * 10 + position + 1).to_bytes(16)}
        told = {key: text for key in KEYS if key not in public} | {text: text}
        resource = dict.fromkeys((*otlp.RESOURCE, "host.name", text), text)
        yield otlp.traces(*_spans(text, told, ids), resource=resource), "traces"
        yield otlp.logs(*_logs(text, told, ids), resource=resource), "logs"


def _spans(text, told, ids):
    told = told | {"gen_ai.operation.name": "execute_tool"}
    attempt = dict.fromkeys(("code", "reason", "effect"), text) | {"number": 1}
    for number, outcome in enumerate(("failed", "ok", "declined"), start=1):
        record = told | {"toolfault.outcome": outcome, "toolfault.attempts": 2}
        del record["toolfault.attempt_list"]
        events = [("toolfault.attempt", attempt), (text, {text: text})]
        yield otlp.span(
            f"execute_tool {text}", record, events=events, span_id=number.to_bytes(8),
            start_time_unix_nano=NOW, **ids,
        )  # fmt: skip
    results = {"gen_ai.tool.call.result": json.dumps(_envelope(text))}
    yield otlp.span(text, told | results, events=[("exception", told)], span_id=b"9" * 8, **ids)


def _logs(text, told, ids):
    listed = json.dumps([{"number": 1, "reason": text, "code": text}])
    written = {"toolfault.reasons": json.dumps({text: text}), "toolfault.attempt_list": listed}
    for number, event in enumerate(
        ("toolfault.tool_error", "toolfault.tool_declared", "toolfault.exception", "toolfault.log",
         "toolfault.model_call", "toolfault.dead_letter", f"toolfault.{text}", text)
    ):  # fmt: skip
        for body in (text, {text: [text]}):
            yield otlp.log(event, told | written, body=body, time_unix_nano=NOW + number, **ids)


def _envelope(text):
    error = dict.fromkeys(("reason", "message", "field", "ref", "action"), text)
    return {"status": "error", "error": error | {"code": "CONFLICT"}, text: text}


def _json_logs(secret, number):
    value = {"stringValue": secret}
    told = [
        {"key": key, "value": value} for key in (*KEYS, secret) if key != "toolfault.owner_contact"
    ]
    record = {"eventName": "toolfault.log", "body": value, "attributes": told}
    record |= {"traceId": number.to_bytes(16).hex(), "spanId": "01" * 8}
    resource = {"attributes": [{"key": "service.name", "value": value}]}
    return {"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": [record]}]}]}


@pytest.fixture(scope="module")
def dump(planted):
    """The whole database as text."""
    tables = planted.rows(
        "SELECT oid::regclass::text AS name FROM pg_class WHERE relkind = 'r' AND NOT relispartition "
        "AND relnamespace = 'public'::regnamespace OR relkind = 'p' AND relnamespace = 'public'::regnamespace"
    )
    rows = [
        row.text
        for (name,) in tables
        for row in planted.rows(f"SELECT t::text AS text FROM {name} t")  # noqa: S608
    ]
    assert len(rows) > 200
    return "\n".join(rows)


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_planted_in_every_field_is_nowhere_in_the_database(dump, name):
    at = dump.find(CORES[name])
    assert at < 0, dump[max(0, at - 200) : at + 100]


def test_nor_in_the_metrics_of_the_service(planted):
    from prometheus_client import generate_latest  # noqa: PLC0415 - only here

    told = generate_latest(planted.service.pipeline.metrics.registry).decode()
    assert not [core for core in CORES.values() if core in told]
