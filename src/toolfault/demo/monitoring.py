"""Prometheus and Alertmanager beside a service, with the alerts' rules at a demo's speed."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from toolfault.alerts.build import build
from toolfault.alerts.routing import alertmanager
from toolfault.alerts.spec import Alerts, Spec, Spike, Stack, Waits
from toolfault.alerts.windows import Baseline, Windows
from toolfault.settings import StartError
from toolfault.store.embedded import free_port
from toolfault.store.watching import ends_with_us

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_READY_WITHIN = 30.0  # s
_STOPS_WITHIN = 10.0  # s
_EVERY = "2s"
_PROMETHEUS = ("prometheus",)
_ALERTMANAGER = ("alertmanager", "prometheus-alertmanager")  # Debian's name is the second

#: The shipped rules with windows of seconds: what takes minutes is seen within a demo.
FAST = Spec(
    windows=Windows(
        short="15s",
        stretch="4s",
        medium="30s",
        long="60s",
        slow="2m",
        near="5s",
        evaluation="1s",
    ),
    baseline=Baseline(bucket="5s", learned="10s"),
    waits=Waits(group="2s", group_again="5s", cards="2s"),
    alerts=Alerts(
        # without history one failure of one call is S = 1.4
        internal_error_spike=Spike(
            severity="critical", keep="5s", nats=1.2, factor=3.0, floor=0.002, burst=1
        ),
    ),
)


class Monitoring(NamedTuple):
    """Where both are reached."""

    prometheus: str
    alertmanager: str


def is_installed() -> bool:
    """Whether both programs are on this machine."""
    return _program(_PROMETHEUS) is not None and _program(_ALERTMANAGER) is not None


@contextmanager
def start_monitoring(
    folder: Path,
    web: str,
    spec: Spec = FAST,
    arrange: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
) -> Iterator[Monitoring]:
    """Scrape the service at `web`, evaluate the rules, and tell the service what fires.

    `arrange` may change Alertmanager's configuration; by default only the service is told.

    Raises:
        StartError: one of them is missing or did not start.
    """
    at = Monitoring(*(f"http://127.0.0.1:{free_port()}" for _ in Monitoring._fields))
    spec = replace(
        spec, links=replace(spec.links, toolfault=web), stack=_stack(web, at.alertmanager)
    )
    build(folder, spec)
    told = (arrange or _tell_only_the_service)(alertmanager(spec))
    _write(folder / "alertmanager.yml", told)
    with ExitStack() as stack:
        stack.enter_context(
            _running(
                folder,
                at.alertmanager,
                _needed(_ALERTMANAGER),
                f"--config.file={folder / 'alertmanager.yml'}",
                f"--storage.path={folder / 'alertmanager'}",
                "--cluster.listen-address=",
            )
        )
        stack.enter_context(
            _running(
                folder,
                at.prometheus,
                _needed(_PROMETHEUS),
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'prometheus'}",
                "--enable-feature=exemplar-storage",
            )
        )
        _wait_until_scraped(at.prometheus, spec.jobs.tools)
        yield at


def _stack(web: str, alertmanager: str) -> Stack:
    return Stack(
        replicas=(web,), collectors=(), alertmanagers=(alertmanager,), every=_EVERY, token_file=""
    )


def _tell_only_the_service(config: dict[str, Any]) -> dict[str, Any]:
    """Routes as they are; nobody else is told, as the demo has no pager."""
    receivers = [
        receiver if receiver["name"] == "toolfault" else {"name": receiver["name"]}
        for receiver in config["receivers"]
    ]
    return {**config, "receivers": receivers}


def _write(path: Path, data: dict[str, Any]) -> None:
    path.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")


def _program(names: tuple[str, ...]) -> str | None:
    return next((found for name in names if (found := shutil.which(name))), None)


def _needed(names: tuple[str, ...]) -> str:
    if (found := _program(names)) is None:
        raise StartError(
            f"{names[0]} is not installed. Get it with: sudo apt-get install {names[-1]}"
        )
    return found


@contextmanager
def _running(folder: Path, address: str, program: str, *flags: str) -> Iterator[None]:
    listen = f"--web.listen-address={address.removeprefix('http://')}"
    with (
        (folder / f"{program.rpartition('/')[2]}.log").open("wb") as log,
        subprocess.Popen([program, listen, *flags], stdout=log, stderr=log) as process,
        ends_with_us(process.pid),
    ):
        try:
            _wait_until_ready(address, process, log.name)
            yield
        finally:
            process.terminate()
            process.wait(_STOPS_WITHIN)


def _wait_until_scraped(address: str, job: str) -> None:
    """Until two scrapes succeeded: what appears from now on is known to be new."""
    asked = urllib.parse.quote(f'sum_over_time(up{{job="{job}"}}[1m]) >= 2')
    deadline = time.monotonic() + _READY_WITHIN
    while time.monotonic() < deadline:
        with urllib.request.urlopen(f"{address}/api/v1/query?query={asked}", timeout=5) as answer:  # noqa: S310 - our own
            if json.load(answer)["data"]["result"]:
                return
        time.sleep(0.2)
    raise StartError(f"Prometheus cannot scrape the service; {address}/targets says why.")


def _wait_until_ready(address: str, process: subprocess.Popen[bytes], log: str) -> None:
    deadline = time.monotonic() + _READY_WITHIN
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{address}/-/ready", timeout=1):  # noqa: S310 - our own
                return
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            time.sleep(0.05)
    raise StartError(f"{address} did not become ready; {log} says why.")
