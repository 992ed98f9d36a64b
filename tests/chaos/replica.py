"""`toolfault up` in a process of its own, which can be killed and started again on the same ports."""

import json
import signal
import socket
import subprocess
import sys

import httpx
from tests.chaos.database import until
from tests.end_to_end.harness import environment


class Replica:
    """One service before the test's database."""

    def __init__(self, url):
        self._url = url
        self._ports = _free_ports()
        self._process = None

    @property
    def grpc(self):
        return f"127.0.0.1:{self._ports['grpc']}"

    @property
    def http(self):
        return f"http://127.0.0.1:{self._ports['http']}"

    def start(self):
        command = [sys.executable, "-m", "toolfault.cli", "up", "--json"]
        for name, port in self._ports.items():
            command += [f"--{name}-port", str(port)]
        settings = environment(TOOLFAULT_DATABASE_URL=self._url, TOOLFAULT_LOG_LEVEL="error")
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=settings)
        assert json.loads(self._process.stdout.readline())["http"] == self.http

    def running(self):
        """Itself, started if it is not."""
        if self._process is None or self._process.poll() is not None:
            self.start()
        return self

    def kill(self):
        self._end(signal.SIGKILL)

    def terminate(self):
        self._process.send_signal(signal.SIGTERM)

    def ended(self):
        """The exit code, once it has one."""
        code = self._process.wait(60)
        self._process.stdout.close()
        return code

    def takes_no_more(self):
        """Whether nobody listens for OTLP any more."""
        return all(map(_is_refused, (self._ports["grpc"], self._ports["http"])))

    def close(self):
        if self._process is not None and self._process.poll() is None:
            self._end(signal.SIGTERM)

    def _end(self, number):
        self._process.send_signal(number)
        self.ended()

    def readiness(self):
        return httpx.get(f"http://127.0.0.1:{self._ports['web']}/readyz", timeout=30)

    def metrics(self):
        return httpx.get(f"http://127.0.0.1:{self._ports['web']}/metrics", timeout=30).text

    def held_bytes(self):
        """What it has read and not yet answered, by its own count."""
        name = "toolfault_ingest_queue_bytes "
        [told] = [line for line in self.metrics().splitlines() if line.startswith(name)]
        return float(told.removeprefix(name))

    def wait_until_ready(self):
        until(lambda: self.readiness().status_code == 200)


def _is_refused(port):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return True
    return False


def _free_ports():
    probes = {name: socket.create_server(("127.0.0.1", 0)) for name in ("grpc", "http", "web")}
    ports = {name: probe.getsockname()[1] for name, probe in probes.items()}
    for probe in probes.values():
        probe.close()
    return ports
