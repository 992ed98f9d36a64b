"""The configurations we ship, run by the real Collector before a service that asks for tokens."""

import gzip
import re
import subprocess

import httpx
import psycopg
import pytest
from tests.chaos.database import until
from tests.end_to_end.harness import (
    HERE,
    Service,
    environment,
    new_database,
    new_tokens,
    run_agent,
    running,
)
from tests.stack.collector import PROGRAM, ROOT, Collector

from toolfault import reference
from toolfault.store.tokens import Role

#: Beside sending to the service, keep all of it in a file, for `toolfault import`.
KEEP = """
exporters:
  file: { path: "%s", flush_interval: 100ms }
service:
  pipelines:
    traces: { exporters: [otlp_http/toolfault, file] }
    logs: { exporters: [otlp_http/toolfault, file] }
"""


class Guarded(Service):
    """A service that asks for tokens."""

    def look_up(self, found):
        with psycopg.connect(self.database_url) as conn:
            rows = conn.execute(
                "SELECT tool, outcome, service FROM tool_call WHERE reference_id = %s", [found]
            ).fetchall()
        return {"matches": rows}


@pytest.fixture(scope="module")
def database(postgres):
    return new_database(postgres, "stack")


@pytest.fixture(scope="module")
def tokens(database):
    return new_tokens(database, Role.INGEST, Role.SUPPORT)


@pytest.fixture(scope="module")
def service(database, tokens):
    with running("--host", "0.0.0.0", TOOLFAULT_DATABASE_URL=database) as addresses:  # noqa: S104
        here = {name: url.replace("0.0.0.0", "127.0.0.1") for name, url in addresses.items()}  # noqa: S104
        yield Guarded(database, **here)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Where the Collector keeps a copy."""
    return tmp_path_factory.mktemp("kept") / "telemetry.json"


@pytest.fixture(scope="module")
def collector(service, tokens, kept, tmp_path_factory):
    folder = tmp_path_factory.mktemp("collector")
    (folder / "keep.yaml").write_text(KEEP % kept)
    made = Collector(folder, service.http, tokens[Role.INGEST], folder / "keep.yaml")
    yield made
    made.close()


@pytest.mark.parametrize("name", ["gateway.yaml", "sidecar.yaml"])
def test_the_collector_accepts_each_configuration(name, tmp_path):
    (tmp_path / "token").write_text("visibly-fake")
    settings = environment(
        TOOLFAULT_INGEST_TOKEN_FILE=str(tmp_path / "token"), COLLECTOR_QUEUE_DIR=str(tmp_path)
    )
    done = subprocess.run(
        [PROGRAM, "validate", "--config", ROOT / "collector" / name],
        env=settings, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_calls_of_a_python_agent_arrive_without_a_complaint(collector, service, protocol):
    endpoint = f"http://{collector.grpc}" if protocol == "grpc" else collector.http
    told = run_agent(
        "agent.py", f"c-{protocol}",
        OTEL_EXPORTER_OTLP_ENDPOINT=endpoint, OTEL_EXPORTER_OTLP_PROTOCOL=protocol,
    )  # fmt: skip

    outcomes = {tool: outcome for tool, (outcome, _, _) in told.items()}
    until(lambda: len(service.calls(f"c-{protocol}")) == len(outcomes))
    stored = {tool: row[0] for tool, row in service.calls(f"c-{protocol}").items()}
    assert stored == outcomes
    assert collector.complaints() == []


@pytest.mark.parametrize("encoding", ["proto", "http"], ids=["protobuf", "json"])
def test_calls_of_the_javascript_sdk_arrive_without_a_complaint(collector, service, encoding):
    made = reference.new()
    done = subprocess.run(
        ["node", HERE / "foreign_agent.mjs", collector.http, encoding, f"js-{encoding}", made],
        env=environment(), capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert (done.stdout, done.stderr) == ("", "")
    assert service.wait_for(made) == ("book_meeting", "failed", f"js-{encoding}")
    assert collector.complaints() == []


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_spans_of_telemetrygen_arrive_without_a_complaint(collector, service, protocol):
    name = f"generated-{protocol}"
    at = ["--otlp-http"] if protocol == "http" else []
    endpoint = collector.http.removeprefix("http://") if protocol == "http" else collector.grpc
    done = subprocess.run(
        [
            ROOT / "build" / "telemetrygen", "traces", *at, "--otlp-insecure", f"--otlp-endpoint={endpoint}",
            "--traces=20", "--rate=0", f"--service={name}",
            '--telemetry-attributes=gen_ai.operation.name="execute_tool"',
            f'--telemetry-attributes=gen_ai.tool.name="{name}"',
        ],
        env=environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr
    assert set(re.findall(r"\t([A-Z]+)\t", said)) == {"INFO"}
    assert "traces export:" not in said  # how the SDK in it tells of what it could not deliver
    # each trace has the span of a server, and that of its client, which counts under the server's
    until(lambda: service.counted(name) == {(name, "ok", "OK"): 20})
    assert collector.complaints() == []


def test_a_check_through_the_collector_finds_its_sample(collector, service, tokens, toolfault):
    code, out, _ = toolfault(
        "check", "--json", "--endpoint", collector.http, "--url", service.web,
        TOOLFAULT_TOKEN=tokens[Role.SUPPORT],
    )  # fmt: skip

    assert code == 0, out


def test_keys_known_to_hold_secrets_do_not_leave_the_collector(collector, kept):
    secret = "visibly-" + "fake-4711"
    attributes = {
        "http.request.header.authorization": secret, "http.request.header.proxy-authorization": secret,
        "http.request.header.cookie": secret, "http.response.header.set-cookie": secret,
        "http.request.header.x-api-key": secret, "db.statement": secret, "user.password": secret,
        "OPENAI_API_KEY": secret, "aws_secret_access_key": secret, "clientSecret": secret,
        "refresh_token": secret, "auth.token": secret, "credentials": secret,
        "gen_ai.tool.call.arguments": secret,
        "kept": "kept-value", "gen_ai.usage.input_tokens": "kept-tokens", "session.id": "kept-session",
    }  # fmt: skip
    span = {
        "traceId": "1" * 32, "spanId": "1" * 16, "name": "any", "kind": 1,
        "attributes": [{"key": k, "value": {"stringValue": v}} for k, v in attributes.items()],
    }  # fmt: skip
    body = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}

    assert httpx.post(f"{collector.http}/v1/traces", json=body).status_code == 200
    until(lambda: "kept-value" in kept.read_text())
    text = kept.read_text()
    assert secret not in text
    assert "kept-tokens" in text
    assert "kept-session" in text


def test_what_the_collector_kept_in_a_file_can_be_imported(
    collector, service, kept, new_database, toolfault
):
    made = reference.new()
    run_agent("agent.py", made, OTEL_EXPORTER_OTLP_ENDPOINT=collector.http)
    until(lambda: len(service.calls(made)) == 10)
    until(lambda: made in kept.read_text())
    file = kept.with_suffix(".json.gz")
    file.write_bytes(gzip.compress(kept.read_bytes()))
    url = new_database()
    code, out, err = toolfault(
        "import",
        "--json",
        str(file),
        TOOLFAULT_DATABASE_URL=url,
        TOOLFAULT_DATA_DIR=str(kept.parent),
    )

    assert (code, err) == (0, ""), out
    with psycopg.connect(url) as conn:
        rows = conn.execute(
            "SELECT tool, outcome, code, effect, attempts, reference_id, possibly_twice "
            "FROM tool_call_all WHERE conversation_id = %s", [made],
        ).fetchall()  # fmt: skip
    assert {row[0]: row[1:] for row in rows} == service.calls(made)
