"""Plays the demo: the service, the agent in a process of its own, and each reference looked up."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from rich.console import Console

from toolfault import client, settings
from toolfault.demo.summary import Summary
from toolfault.settings import StartError
from toolfault.store.watching import ends_with_us

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from toolfault.settings import Settings

_ARRIVES_WITHIN = 30.0  # s; the SDK exports once more when the agent ends
_STOPS_WITHIN = 30.0  # s
_FIRES_WITHIN = 60.0  # s
_SHOWN = ("reference", "tool", "outcome", "code", "attempts", "effect")


def play(*, once: bool, as_json: bool) -> None:
    """Run the demo; without `once` the service stays up until Ctrl-C.

    Raises:
        StartError: something did not start, or a reference was not found again.
    """
    for ending in (signal.SIGTERM, signal.SIGHUP):  # asked to end, or its terminal was closed
        signal.signal(ending, lambda *_: sys.exit(0))
    summary = Summary(Console(quiet=as_json))
    with (
        tempfile.TemporaryDirectory(prefix="toolfault-demo-") as data,
        _service(data, once=once) as (service, addresses),
    ):
        asked = settings.read({}, url=addresses["web"])
        with summary:
            found = _act(asked, addresses["grpc"], summary.hear)
        if as_json:
            print(json.dumps({"references": found, "web": addresses["web"]}), flush=True)  # noqa: T201
        summary.closing(addresses["web"], found, stays=not once)
        if not once:
            with suppress(KeyboardInterrupt):  # it reaches the service as well
                _stay(service, asked, addresses, summary)


def _stay(
    service: subprocess.Popen[str], asked: Settings, addresses: dict[str, str], summary: Summary
) -> None:
    """Until Ctrl-C. Meanwhile the tools fail once more, now that Prometheus watches."""
    with _monitored(addresses["web"]) as is_monitored:
        if is_monitored:
            again = _act(asked, addresses["grpc"], lambda _: None)
            summary.alerted(_fired(asked, again), heard=True)
        else:
            summary.alerted(None, heard=False)
        service.wait()


def _act(
    asked: Settings, endpoint: str, hear: Callable[[dict[str, Any]], None]
) -> list[dict[str, Any]]:
    """The agent's conversation, and each of its references looked up."""
    told = [call for call in _agent(endpoint, hear) if call["reference"]]
    return [_looked_up(asked, call) for call in told]


@contextmanager
def _service(data: str, *, once: bool) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    command = [sys.executable, "-m", "toolfault.cli", "up", "--json", "--data-dir", data]
    for flag, usual in (("--grpc-port", 4317), ("--http-port", 4318), ("--web-port", 8700)):
        command += [flag, "0" if once or _is_taken(usual) else str(usual)]
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith(settings.PREFIX)
    }
    environ["TOOLFAULT_LOG_LEVEL"] = "warning"
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as service,
        ends_with_us(service.pid),
    ):
        try:
            first = cast("IO[str]", service.stdout).readline()
            if not first:
                raise StartError("The demo's service did not start; it says why above.")
            yield service, json.loads(first)
        finally:
            service.terminate()
            service.wait(_STOPS_WITHIN)


@contextmanager
def _monitored(web: str) -> Iterator[bool]:
    """Prometheus and Alertmanager beside the service, where they are installed."""
    from toolfault.demo import monitoring  # noqa: PLC0415 - not before the first reference is shown

    if not monitoring.is_installed():
        yield False
        return
    with (
        tempfile.TemporaryDirectory(prefix="toolfault-demo-monitoring-") as folder,
        monitoring.start_monitoring(Path(folder), web),
    ):
        yield True


def _fired(asked: Settings, found: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The incident on the card of the tool that crashed, as soon as its alert has fired."""
    crash = next(call for call in found if call["code"] == "INTERNAL")["reference"]
    deadline = time.monotonic() + _FIRES_WITHIN
    while time.monotonic() < deadline:
        for match in client.look_up(asked, crash)["matches"]:
            if incident := match.get("incident"):
                return dict(incident)
        time.sleep(0.5)
    return None


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def _agent(endpoint: str, hear: Callable[[dict[str, Any]], None]) -> Iterator[dict[str, Any]]:
    """What the agent says of its calls, as it says it."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    environ |= {
        "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
        "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
        "OTEL_RESOURCE_ATTRIBUTES": "service.version=1.4.0,deployment.environment.name=demo",
    }
    command = [sys.executable, "-m", "toolfault.demo.agent"]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as agent,
        ExitStack() as undo,
    ):
        undo.callback(agent.terminate)  # nobody listens any more
        for line in cast("IO[str]", agent.stdout):
            said = json.loads(line)
            hear(said)
            if "tool" in said:
                yield said
        undo.pop_all()  # it said all, and sends its last telemetry
    if agent.returncode != 0:
        raise StartError("The demo's agent ended early; it says why above.")


def _looked_up(asked: Settings, told: dict[str, Any]) -> dict[str, Any]:
    """The stored call of a reference, as the API gives it; telemetry may still be on its way."""
    deadline = time.monotonic() + _ARRIVES_WITHIN
    while True:
        for match in client.look_up(asked, told["reference"])["matches"]:
            if (match["tool"], match["outcome"]) == (told["tool"], told["outcome"]):
                return {name: match[name] for name in _SHOWN}
        if time.monotonic() > deadline:
            raise StartError(f"{told['reference']} ({told['tool']}) was not found again.")
        time.sleep(0.1)
