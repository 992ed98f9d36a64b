"""The real OpenTelemetry Collector, built by `make collector`, with the configuration we ship."""

import json
import signal
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

import httpx
from tests.chaos.database import until
from tests.end_to_end.harness import environment

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "collector" / "build" / "otelcol-toolfault"
GATEWAY = ROOT / "collector" / "gateway.yaml"
_PORTS = {
    "grpc": "COLLECTOR_GRPC_ENDPOINT",
    "http": "COLLECTOR_HTTP_ENDPOINT",
    "health": "COLLECTOR_HEALTH_ENDPOINT",
}


class Collector:
    """One gateway; it can be killed and started again on the same ports and the same queue.

    Args:
        folder: of its queue, its token and its log.
        service: address of the OTLP/HTTP port it sends to.
        token: it shows there.
        more: further configurations, which change the shipped one.
    """

    def __init__(self, folder, service, token, *more):
        self._log = folder / "collector.log"
        (folder / "token").write_text(token)
        self._command = [str(PROGRAM)]
        for configuration in (GATEWAY, *more):
            self._command += ["--config", str(configuration)]
        ports = _free_ports(*_PORTS, "metrics")
        self._at = {name: f"127.0.0.1:{port}" for name, port in ports.items()}
        self._settings = environment(
            TOOLFAULT_ENDPOINT=service,
            TOOLFAULT_INGEST_TOKEN_FILE=str(folder / "token"),
            COLLECTOR_QUEUE_DIR=str(folder / "queue"),
            COLLECTOR_METRICS_PORT=str(ports["metrics"]),
            **{variable: self._at[name] for name, variable in _PORTS.items()},
        )
        self._process = None
        self.start()

    @property
    def grpc(self):
        return self._at["grpc"]

    @property
    def http(self):
        return f"http://{self._at['http']}"

    def start(self):
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stderr=log, env=self._settings)
        until(self._is_ready)

    def _is_ready(self):
        assert self._process.poll() is None, self._log.read_text()
        with suppress(httpx.TransportError):
            return httpx.get(f"http://{self._at['health']}").status_code == 200
        return False

    def kill(self):
        self._process.kill()
        self._process.wait()

    def close(self):
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            assert self._process.wait(60) == 0

    def metrics(self):
        return httpx.get(f"http://{self._at['metrics']}/metrics").text

    def complaints(self):
        """What it has logged above `info`."""
        lines = map(json.loads, self._log.read_text().splitlines())
        return [line for line in lines if line["level"] != "info"]


def _free_ports(*names):
    probes = {name: socket.create_server(("127.0.0.1", 0)) for name in names}
    ports = {name: probe.getsockname()[1] for name, probe in probes.items()}
    for probe in probes.values():
        probe.close()
    return ports
