"""Losses are counted exactly and reported; a dead or hanging server holds nobody up.

Each case runs in a process of its own: OpenTelemetry's providers can be set once.
"""

import socket
import subprocess
import sys
import textwrap
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from toolfault.telemetry import delivery
from toolfault.telemetry.delivery import Ender, Gate

AGENT = """
import toolfault
toolfault.configure("agent")
@toolfault.guard("ping")
def ping():
    return "pong"
"""


def run_agent(port, code, **environment):
    return subprocess.run(
        [sys.executable, "-c", AGENT + textwrap.dedent(code)],
        env={"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}", "PATH": ""} | environment,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@contextmanager
def collector(refuse=0):
    """A real OTLP/HTTP end that answers 400 to the first `refuse` requests of spans."""
    received = {"spans": [], "events": []}
    left = [refuse]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/v1/traces" and left[0]:
                left[0] -= 1
                self.send_response(400)
            else:
                self._keep(body)
                self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def _keep(self, body):
            if self.path == "/v1/traces":
                for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                    received["spans"] += [s for scope in resource.scope_spans for s in scope.spans]
            else:
                for resource in ExportLogsServiceRequest.FromString(body).resource_logs:
                    received["events"] += [r for s in resource.scope_logs for r in s.log_records]

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port, received
        server.shutdown()
        thread.join()


def named(events, name):
    return [event for event in events if event.event_name == name]


def counts(events):
    return [
        attribute.value.int_value
        for event in named(events, "toolfault.telemetry_dropped")
        for attribute in event.attributes
        if attribute.key == "toolfault.count"
    ]


def test_what_the_process_reports_arrives_when_it_just_exits():
    with collector() as (port, received):
        done = run_agent(port, "ping()")
    assert (done.returncode, done.stderr) == (0, "")
    assert [span.name for span in received["spans"]] == ["execute_tool ping"]
    assert len(named(received["events"], "toolfault.tool_declared")) == 1


def test_every_span_of_the_process_is_marked():
    with collector() as (port, received):
        run_agent(
            port, "from opentelemetry import trace\ntrace.get_tracer('x').start_span('turn').end()"
        )
    (span,) = received["spans"]
    assert [(a.key, a.value.bool_value) for a in span.attributes] == [("toolfault.sdk", True)]


def test_lost_spans_are_counted_exactly_and_reported_after_the_recovery():
    code = """
    from opentelemetry import trace
    for _ in range(10):
        ping()
    trace.get_tracer_provider().force_flush()   # refused: 10 lost
    ping()
    trace.get_tracer_provider().force_flush()   # delivered: the loss is reported
    """
    with collector(refuse=1) as (port, received):
        done = run_agent(port, code, OTEL_BSP_SCHEDULE_DELAY="60000")
    assert done.returncode == 0
    assert len(received["spans"]) == 1
    assert counts(received["events"]) == [10]


def test_what_the_end_of_the_process_finds_delivered_again_is_reported_as_well():
    code = """
    from opentelemetry import trace
    for _ in range(10):
        ping()
    trace.get_tracer_provider().force_flush()   # refused: 10 lost
    ping()                                      # delivered when the process exits
    """
    with collector(refuse=1) as (port, received):
        run_agent(port, code, OTEL_BSP_SCHEDULE_DELAY="60000")
    assert len(received["spans"]) == 1
    assert counts(received["events"]) == [10]


def test_a_full_queue_loses_the_newest_and_says_how_many():
    code = """
    from opentelemetry import trace
    for _ in range(25):
        ping()
    trace.get_tracer_provider().force_flush()
    """
    limits = {"OTEL_BSP_MAX_QUEUE_SIZE": "10", "OTEL_BSP_SCHEDULE_DELAY": "60000"}
    with collector() as (port, received):
        run_agent(
            port, "import toolfault.telemetry.delivery as d\n" + textwrap.dedent(code), **limits
        )
    delivered = len(received["spans"])
    assert delivered + sum(counts(received["events"])) == 25
    assert delivered >= 10


def test_a_process_whose_server_is_down_or_hangs_goes_on_and_ends():
    with socket.socket() as hanging:
        hanging.bind(("127.0.0.1", 0))
        hanging.listen()
        port = hanging.getsockname()[1]
        done = run_agent(port, "print([ping() for _ in range(3)][-1])")
    assert done.returncode == 0
    assert done.stdout == "{'status': 'ok', 'output': 'pong'}\n"
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    done = run_agent(port, "print(ping()['status'])")
    assert (done.returncode, done.stdout) == (0, "ok\n")
    assert 'Traceback (most recent call last):\n  File "<string>"' not in done.stderr


def test_who_ends_it_again_does_not_wait_again(monkeypatch):
    clock, waited = iter([100.0, 101.0, 110.0]), []
    monkeypatch.setattr(delivery, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    ender = Ender()
    ender._ended = SimpleNamespace(wait=waited.append, set=lambda: None)
    for _ in range(3):
        ender.end()
    assert waited == [4.0, 3.0, 0.0]


def test_a_forked_child_reports_for_itself():
    code = """
    import os
    ping()
    child = os.fork()
    if child == 0:
        ping()
        toolfault.shutdown()
        os._exit(0)
    os.waitpid(child, 0)
    """
    with collector() as (port, received):
        run_agent(port, code, OTEL_BSP_SCHEDULE_DELAY="60000", OTEL_BLRP_SCHEDULE_DELAY="60000")
    assert len(received["spans"]) == 2
    assert len(named(received["events"], "toolfault.tool_declared")) == 2


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("OTEL_TRACES_EXPORTER", "zipkin", "write otlp, console or none"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/xml", "write one of grpc, http/protobuf"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "abc", "give a number of records, 1 or more"),
        ("OTEL_BLRP_MAX_QUEUE_SIZE", "0", "give a number of records, 1 or more"),
    ],
)
def test_a_variable_that_asks_for_something_unknown_is_named(variable, value, told):
    done = run_agent(1, "", **{variable: value})
    assert done.returncode == 1
    assert f"ValueError: {variable} is {value!r}; {told}" in done.stderr


def test_a_disabled_sdk_stays_off():
    done = run_agent(1, "print(ping())", OTEL_SDK_DISABLED="true")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_provider_the_process_has_is_kept():
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent("""
            from opentelemetry import trace
            from opentelemetry.sdk.trace import TracerProvider
            mine = TracerProvider()
            trace.set_tracer_provider(mine)
            import toolfault
            toolfault.configure()
            toolfault.configure()
            assert trace.get_tracer_provider() is mine
            span = mine.get_tracer("x").start_span("turn")
            print(dict(span.attributes))
        """)],
        env={"OTEL_LOGS_EXPORTER": "none", "PATH": ""},
        capture_output=True, text=True, timeout=30, check=True,
    )  # fmt: skip
    assert done.stdout == "{'toolfault.sdk': True}\n"


def test_a_gate_lets_through_what_the_queue_holds_and_counts_the_rest(exported):
    gate = Gate("UNSET_QUEUE_SIZE")
    assert [gate.admit() for _ in range(2050)].count(False) == 2
    gate.done(512, delivered=False)
    gate.done(512, delivered=True)
    (event,) = exported.named("toolfault.telemetry_dropped")
    assert event.attributes["toolfault.count"] == 2 + 512
    gate.done(1024, delivered=True)
    assert len(exported.named("toolfault.telemetry_dropped")) == 1


def test_configure_puts_the_black_box_where_every_logger_reaches_it():
    code = """
    import logging
    @toolfault.guard("bug")
    def bug():
        logging.getLogger("app.calendar").warning("asking for %s", "slot 10:00")
        raise KeyError
    bug()
    """
    with collector() as (port, received):
        run_agent(port, code)
    (record,) = named(received["events"], "toolfault.log")
    assert record.body.string_value == "asking for slot 10:00"


def test_the_applications_own_log_is_as_it_was():
    last_resort = run_agent(
        1,
        "import logging\nlogging.warning('seen')",
        OTEL_LOGS_EXPORTER="none",
        OTEL_TRACES_EXPORTER="none",
    )
    assert last_resort.stderr == "WARNING:root:seen\n"
    code = """
    import logging, sys
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(message)s")
    logging.getLogger("app").info("seen")
    """
    configured = run_agent(1, code, OTEL_LOGS_EXPORTER="none", OTEL_TRACES_EXPORTER="none")
    assert (configured.stdout, configured.stderr) == ("seen\n", "")
