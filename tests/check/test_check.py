"""`toolfault check` against a running service, and against everything that may stand in its place."""

import json
import socket
import subprocess
import threading
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg
import pytest
from tests.end_to_end.harness import new_database, new_tokens, running

from toolfault.store.tokens import Role


@pytest.fixture(scope="module")
def database(postgres):
    return new_database(postgres, "checked")


@pytest.fixture(scope="module")
def tokens(database):
    """A token of each of two roles."""
    return new_tokens(database, Role.INGEST, Role.SUPPORT)


@pytest.fixture(scope="module")
def service(database):
    with running(TOOLFAULT_DATABASE_URL=database) as addresses:
        yield addresses


@pytest.fixture(scope="module")
def guarded(database, tokens):
    """A service that asks for tokens."""
    with running("--host", "0.0.0.0", TOOLFAULT_DATABASE_URL=database) as addresses:  # noqa: S104
        yield {name: url.replace("0.0.0.0", "127.0.0.1") for name, url in addresses.items()}  # noqa: S104


@pytest.fixture
def check(toolfault):
    """Runs the command: exit code, its steps by name."""

    def run(*arguments, **variables):
        code, out, err = toolfault("check", "--json", *arguments, **variables)
        assert not err
        return code, {step["name"]: step for step in json.loads(out)["steps"]}

    return run


@pytest.fixture
def stranger():
    """Starts an HTTP server that gives one answer to everything: its address."""
    servers = []

    def start(status, body=b"", content_type="text/html", **headers):
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self._answer()

            def do_POST(self):
                self._answer()

            def _answer(self):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.send_response_only(status)
                for name, value in {"Content-Type": content_type, **headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def closed_port():
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        yield opened.getsockname()[1]


def _states(steps):
    return {name: step["state"] for name, step in steps.items()}


ALL_FINE = dict.fromkeys(("address", "telemetry", "ready", "clock", "look-up"), "ok")


@pytest.mark.parametrize(("protocol", "port"), [("http/protobuf", "http"), ("grpc", "grpc")])
def test_a_service_that_is_well_passes_every_check(check, service, protocol, port):
    code, steps = check(
        "--protocol", protocol, "--endpoint", service[port], "--url", service["web"]
    )

    assert code == 0
    assert _states(steps) == ALL_FINE
    assert all(step["next_step"] is None for step in steps.values())


def test_the_standard_variables_say_where_agents_send(check, service):
    code, steps = check(
        OTEL_EXPORTER_OTLP_ENDPOINT=service["grpc"],
        OTEL_EXPORTER_OTLP_PROTOCOL="grpc",
        TOOLFAULT_URL=service["web"],
    )

    assert code == 0
    assert _states(steps) == ALL_FINE


def test_a_variable_for_traces_alone_is_taken_as_it_is(check, service):
    code, _ = check(
        OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:1",
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=f"{service['http']}/v1/traces",
        TOOLFAULT_URL=service["web"],
    )

    assert code == 0


def test_the_sample_counts_as_an_answer_of_a_service_of_its_own(check, service, database):
    with psycopg.connect(database) as conn:
        conn.execute("DELETE FROM tool_call")
        conn.commit()
        check("--endpoint", service["http"], "--url", service["web"])
        stored = conn.execute(
            "SELECT service, tool, outcome, effect, fingerprint FROM tool_call"
        ).fetchall()

    assert stored == [("toolfault-check", "toolfault_check", "declined", "none", None)]


@pytest.mark.parametrize(("protocol", "port"), [("http/protobuf", "http"), ("grpc", "grpc")])
def test_tokens_that_suffice_pass_every_check(check, guarded, tokens, protocol, port):
    code, steps = check(
        "--protocol", protocol, "--endpoint", guarded[port], "--url", guarded["web"],
        OTEL_EXPORTER_OTLP_HEADERS=f"authorization=Bearer {tokens[Role.INGEST]}",
        TOOLFAULT_TOKEN=tokens[Role.SUPPORT],
    )  # fmt: skip

    assert code == 0
    assert _states(steps) == ALL_FINE


@pytest.mark.parametrize(("protocol", "port"), [("http/protobuf", "http"), ("grpc", "grpc")])
def test_a_token_that_may_not_send_is_told(check, guarded, tokens, protocol, port):
    for headers in ("", "Bearer visibly-fake", f"Bearer {tokens[Role.SUPPORT]}"):
        code, steps = check(
            "--protocol", protocol, "--endpoint", guarded[port], "--url", guarded["web"],
            OTEL_EXPORTER_OTLP_HEADERS=f"authorization={headers}",
        )  # fmt: skip

        assert code == 1
        assert steps["telemetry"]["state"] == "failed"
        assert "token" in steps["telemetry"]["told"]
        assert "--role ingest" in steps["telemetry"]["next_step"]
        assert steps["look-up"]["state"] == "skipped"


def test_a_token_that_may_not_look_up_is_told(check, guarded, tokens):
    code, steps = check(
        "--endpoint", guarded["http"], "--url", guarded["web"],
        OTEL_EXPORTER_OTLP_HEADERS=f"authorization=Bearer {tokens[Role.INGEST]}",
    )  # fmt: skip

    assert code == 1
    assert _states(steps) == ALL_FINE | {"look-up": "failed"}
    assert "TOOLFAULT_TOKEN" in steps["look-up"]["told"]
    assert "support" in steps["look-up"]["next_step"]


def test_a_closed_port_is_told_and_the_service_is_looked_at_all_the_same(
    check, service, closed_port
):
    code, steps = check("--endpoint", f"http://127.0.0.1:{closed_port}", "--url", service["web"])

    assert code == 1
    assert steps["address"]["told"] == f"Nothing listens on 127.0.0.1:{closed_port}."
    assert "toolfault up" in steps["address"]["next_step"]
    assert _states(steps) == {
        "address": "failed", "telemetry": "skipped", "ready": "ok", "clock": "ok", "look-up": "skipped",
    }  # fmt: skip


def test_a_name_nobody_knows_is_told(check, service):
    code, steps = check("--endpoint", "http://toolfault.invalid:4318", "--url", service["web"])

    assert code == 1
    assert steps["address"]["told"] == "The name toolfault.invalid is not known here."


def test_a_port_without_tls_is_told(check, service):
    code, steps = check(
        "--endpoint", service["http"].replace("http:", "https:"), "--url", service["web"]
    )

    assert code == 1
    assert steps["TLS"]["told"] == "What listens there speaks no TLS."
    assert "http://" in steps["TLS"]["next_step"]


def test_a_certificate_has_to_be_trusted(check, database, tmp_path):
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip
    with running(
        TOOLFAULT_DATABASE_URL=database,
        TOOLFAULT_TLS_CERTIFICATE=str(certificate),
        TOOLFAULT_TLS_KEY=str(key),
    ) as addresses:
        code, refused = check("--endpoint", addresses["http"], "--url", addresses["web"])
        trusted = {
            protocol: check(
                "--protocol", protocol, "--endpoint", addresses[port], "--url", addresses["web"],
                OTEL_EXPORTER_OTLP_CERTIFICATE=str(certificate),
            )[1]
            for protocol, port in (("http/protobuf", "http"), ("grpc", "grpc"))
        }  # fmt: skip

    assert code == 1
    assert "not trusted" in refused["TLS"]["told"]
    assert "OTEL_EXPORTER_OTLP_CERTIFICATE" in refused["TLS"]["next_step"]
    assert "not trusted" in refused["ready"]["told"]
    assert "SSL_CERT_FILE" in refused["ready"]["next_step"]
    for steps in trusted.values():
        assert (steps["TLS"]["state"], steps["telemetry"]["state"]) == ("ok", "ok")


def test_a_file_of_certificates_that_is_none_is_a_mistake(toolfault, tmp_path, service):
    code, _, err = toolfault(
        "check", "--endpoint", service["http"].replace("http:", "https:"),
        OTEL_EXPORTER_OTLP_CERTIFICATE=str(tmp_path / "nowhere.pem"),
    )  # fmt: skip

    assert code == 2
    assert "OTEL_EXPORTER_OTLP_CERTIFICATE" in err


def test_what_is_not_otlp_is_told(check, stranger, service):
    for answer in [(404,), (200, b"<html>"), (307, b"", "text/html")]:
        code, steps = check("--endpoint", stranger(*answer), "--url", service["web"])

        assert code == 1
        assert "OTLP" in steps["telemetry"]["told"]
        assert "4317" in steps["telemetry"]["next_step"]


@pytest.mark.parametrize(("protocol", "port"), [("http/protobuf", "grpc"), ("grpc", "http")])
def test_the_port_of_the_other_protocol_is_told(check, service, protocol, port):
    code, steps = check(
        "--protocol", protocol, "--endpoint", service[port], "--url", service["web"]
    )

    assert code == 1
    assert steps["telemetry"]["state"] == "failed"
    assert "OTEL_EXPORTER_OTLP_PROTOCOL" in steps["telemetry"]["next_step"]


def test_a_refusal_inside_a_success_is_told(check, stranger, service):
    # ExportTraceServiceResponse{partial_success{rejected_spans: 1, error_message: "no"}}
    partial = bytes.fromhex("0a06" + "0801" + "1202" + "6e6f")
    code, steps = check(
        "--endpoint", stranger(200, partial, "application/x-protobuf"), "--url", service["web"]
    )

    assert code == 1
    assert steps["telemetry"]["told"].endswith(": no")


def test_an_endpoint_that_is_overloaded_is_told(check, stranger, service):
    code, steps = check("--endpoint", stranger(503), "--url", service["web"])

    assert code == 1
    assert "at the moment" in steps["telemetry"]["told"]


def test_a_service_that_is_not_ready_says_why(check, stranger, service):
    not_ready = b'{"status": "not ready", "reason": "The database does not answer."}'
    code, steps = check("--endpoint", service["http"], "--url", stranger(503, not_ready))

    assert code == 1
    assert "The database does not answer." in steps["ready"]["told"]
    assert steps["look-up"]["state"] == "skipped"


def test_a_service_that_is_another_one_or_none_is_told(check, stranger, service, closed_port):
    _, other = check("--endpoint", service["http"], "--url", stranger(200, b"hello"))
    code, none = check("--endpoint", service["http"], "--url", f"http://127.0.0.1:{closed_port}")

    assert code == 1
    assert "is not toolfault" in other["ready"]["told"]
    assert "No service answers" in none["ready"]["told"]


@pytest.mark.parametrize("wrong", [(-1, "ahead of"), (1, "behind")])
def test_a_clock_that_is_wrong_is_told(check, stranger, monkeypatch, service, wrong):
    hours, way = wrong
    monkeypatch.setattr("toolfault.check.service._LOOK_SECONDS", 0.0)
    date = format_datetime(datetime.now(UTC) + timedelta(hours=hours), usegmt=True)
    elsewhere = stranger(200, b'{"status": "ready"}', "application/json", Date=date)
    code, steps = check("--endpoint", service["http"], "--url", elsewhere)

    assert code == 1
    assert f" s {way} the service's" in steps["clock"]["told"]
    assert "NTP" in steps["clock"]["next_step"]


def test_what_leads_elsewhere_is_told(check, monkeypatch, service, stranger):
    monkeypatch.setattr("toolfault.check.service._LOOK_SECONDS", 0.1)
    taken = stranger(200, b"", "application/x-protobuf")
    code, steps = check("--endpoint", taken, "--url", service["web"])

    assert code == 1
    assert "is not found" in steps["look-up"]["told"]
    assert "toolfault-check" in steps["look-up"]["next_step"]


@pytest.mark.parametrize(
    "variables",
    [
        {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "collector"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:port"},
    ],
)
def test_a_variable_no_exporter_accepts_is_a_mistake(toolfault, variables):
    code, _, err = toolfault("check", **variables)

    assert code == 2
    assert min(variables) in err
    assert "Traceback" not in err


def test_a_person_reads_one_line_for_each_check_and_the_next_step(toolfault, service, closed_port):
    endpoint = f"http://127.0.0.1:{closed_port}"
    code, out, _ = toolfault("check", "--endpoint", endpoint, "--url", service["web"])

    assert code == 1
    assert out.splitlines()[:3] == [
        f"{endpoint}/v1/traces (http/protobuf), {service['web']}",
        f"FAILED address    Nothing listens on 127.0.0.1:{closed_port}.",
        f"{'':17} Start what should (`toolfault up`, or the Collector), or correct "
        "OTEL_EXPORTER_OTLP_ENDPOINT or --endpoint.",
    ]


def test_no_secret_is_shown(toolfault, service):
    secret = "visibly-" + "fake-4711"
    _, out, err = toolfault(
        "check", "--json", "--endpoint", service["http"], "--url", service["web"],
        OTEL_EXPORTER_OTLP_HEADERS=f"authorization=Bearer {secret}", TOOLFAULT_TOKEN=secret,
    )  # fmt: skip

    assert secret not in out + err
