"""What evaluating the alerts' rules costs in five minutes, for 1,000 tools with a week behind them.

    python benchmarks/rule_cost.py [--tools N] [--minutes M] [--speed S]

A real Prometheus scrapes a page of totals, once with the shipped rules and once without any. Two
clocks: Prometheus' own of how long it evaluates, which is what delays alerts, and the difference of
both CPU times, which adds writing down what is recorded and collecting garbage. Groups are
evaluated S times as often as shipped and the cost is divided by S, so that two minutes show what an
hour costs. What was scraped in the last minutes and recorded in the week before is written first:
every tool fails as often as it usually does.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from math import inf
from pathlib import Path

import yaml

from toolfault.alerts.build import build
from toolfault.alerts.scraping import prometheus
from toolfault.alerts.signals import (
    INTERNAL,
    INVALID_ARGUMENT,
    PLACE_BUCKET,
    TICKETS,
    TOOLS,
    Family,
)
from toolfault.alerts.spec import Spec, Stack, seconds
from toolfault.taxonomy import PAIRS

COUNT = "toolfault_tool_call_duration_seconds_count"
BUDGET = "toolfault_budget_exhausted_total"
ONCE = ("toolfault_generic_error_total", "toolfault_backstop_reached_total")
MINUTE, DAY = 60, 86_400
SCRAPE = 30
MEMORY = 55 * MINUTE  # older samples are not taken from a page
LOOK = 8 * MINUTE  # how far the rules look back at what is scraped and not always 0
WARM = 45  # s, until the first pages are read


def place(number: int) -> str:
    """In the order in which toolfault gives its totals, and so in that of Prometheus' series."""
    return f'service="s{number // 50:02}",environment="prod",tool="t{number:04}"'


def rate(number: int) -> int:
    """Calls a second."""
    return 1 + number % 7


def often(number: int, code: str) -> int:
    """Calls to one failure: every tool crashes and is misused, one in ten fails in every way."""
    if number % 10 == 0:
        return 100
    return 1000 if code in (INTERNAL, INVALID_ARGUMENT) else 0


def page(tools: int, elapsed: float) -> bytes:
    """The totals as they would be."""
    lines = []
    for number in range(tools):
        calls = 100_000 + int(elapsed * rate(number))
        lines.append(f"{COUNT}{{{place(number)}}} {calls}")
        for outcome, code in PAIRS:
            every = often(number, code) if outcome == "failed" else 0
            value = calls if outcome == "ok" else calls // every if every else 0
            lines.append(
                f'toolfault_tool_calls_total{{{place(number)},outcome="{outcome}",code="{code}"}} {value}'
            )
        if every := often(number, BUDGET):  # of what never happened there is no series
            lines.append(f"{BUDGET}{{{place(number)}}} {calls // every}")
            lines += [f"{event}{{{place(number)}}} 1" for event in ONCE]
    return ("\n".join(lines) + "\n").encode()


@contextmanager
def totals(tools: int, began: float):
    """Where a Prometheus finds the page; first it is told what it would have in memory by now."""
    first = {
        "/metrics/tools": b"".join(scraped(tools, began)),
        "/past": "".join(recorded(tools, began, since=began - MEMORY)).encode(),
    }

    class Page(BaseHTTPRequestHandler):
        def do_GET(self):
            body = first.pop(self.path, b"")
            if self.path == "/metrics/tools":
                body += page(tools, time.time() - began)
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def scraped(tools: int, began: float):
    """The page as it was, with its times."""
    for at in range(int(began) - LOOK, int(began), SCRAPE):
        yield (b"up 1\n" + page(tools, at - began)).replace(b"\n", b" %d\n" % (1000 * at))


def history(tools: int, began: float):
    """Metric, labels, times and values of what was recorded, where the rules look for it: the stretches
    of the last day and of a week ago, and what was learned around this time of the days before."""
    now = int(began) // 1800 * 1800
    week = range(now - 7 * DAY - 1800, now - 7 * DAY + 1800, 300)
    stretches = [*week, *range(now - DAY - 1800, int(began), 300)]
    for first in range(0, tools, 50):
        calls = sum(300 * rate(number) for number in range(first, first + 50))
        yield PLACE_BUCKET, place(first).rpartition(",")[0], stretches, [calls] * len(stretches)
    yield from counted(TOOLS, tools, stretches, 300)
    yield from counted(TICKETS, tools, [at for at in stretches if at % 1800 == 0], 1800)
    around = [
        at
        for back in range(8)
        for at in range(now - back * DAY - 90 * MINUTE, now - back * DAY + 120 * MINUTE, 1800)
        if at < began
    ]
    for family in (TOOLS, TICKETS):
        yield from learned(family, tools, sorted(around))


def counted(family: Family, tools: int, stretches: list[int], length: int):
    """Calls and failures of stretches of so many seconds; where nothing failed there is nothing."""
    dice = random.Random(1)
    for number in range(tools):
        values = [length * rate(number)] * len(stretches)
        yield f"{family.calls}:bucket", place(number), stretches, values
        for signal in family.signals:
            if every := often(number, signal):
                bad = length * rate(number) / every
                times = [at for at in stretches if dice.random() < bad]
                labels = f'{place(number)},signal="{signal}"'
                yield f"{family.bad}:bucket", labels, times, [max(1, round(bad))] * len(times)


def learned(family: Family, tools: int, times: list[int]):
    """What is usual; one tool in ten fails more at this hour of the day."""
    dice = random.Random(2)
    signals = tuple(family.signals)
    names = dict.fromkeys(("day", "hour", "ratio_of_day", "ratio_of_hour", "ratio"), signals)
    names |= {f"ratio{getattr(Spec().windows, w)}": s for w, s in family.watched.items()}
    for name, number in product(names, range(tools)):
        of_hour = 3 if "hour" in name else 1
        for signal in names[name]:
            every = often(number, signal)
            if of_hour == 1 or (every and number % 10 == 1):
                labels = f'{place(number)},signal="{signal}"'
                values = [of_hour / (every or 9999) * dice.uniform(0.9, 1.1) for _ in times]
                yield f"{family.usual}:{name}", labels, times, values


def recorded(tools: int, began: float, since: float = 0, until: float = inf, unit: int = 1000):
    """The same, a line each."""
    for name, labels, times, values in history(tools, began):
        for at, value in zip(times, values, strict=True):
            if since <= at < until:
                yield f"{name}{{{labels}}} {value} {at * unit}\n"


def write_history(folder: Path, tools: int, began: float) -> Path:
    """What is no longer in memory."""
    path, data = folder / "history.om", folder / "history"
    with path.open("w") as out:
        out.writelines(recorded(tools, began, until=began - MEMORY, unit=1))
        out.write("# EOF\n")
    subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "--max-block-duration=500h", "openmetrics", path, data],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    path.unlink()
    return data


def hasten(path: Path, speed: float) -> None:
    """Have the groups of a rule file evaluated more often."""
    data = yaml.safe_load(path.read_text())
    for group in data["groups"]:
        group["interval"] = f"{1000 * seconds(group['interval']) / speed:.0f}ms"
    path.write_text(yaml.safe_dump(data))


@contextmanager
def scraping(folder: Path, web: str, data: Path, speed: float, *, rules: bool):
    folder.mkdir()
    every = f"{SCRAPE}s"
    stack = Stack(replicas=(web,), collectors=(), alertmanagers=(), every=every, token_file="")
    build(folder, Spec())
    for path in folder.glob("*.rules.yml"):
        hasten(path, speed) if rules else path.unlink()
    config = prometheus(Spec(stack=stack))
    config["global"]["scrape_timeout"] = every  # the first pages are long
    unlabelled = [{"action": "labeldrop", "regex": "job|instance"}]
    past = {"job_name": "past", "metrics_path": "/past", "metric_relabel_configs": unlabelled}
    config["scrape_configs"].append({**config["scrape_configs"][0], **past})
    (folder / "prometheus.yml").write_text(json.dumps(config))
    shutil.copytree(data, folder / "data")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    command = [
        "prometheus", f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address={address}",
        "--log.level=error",
    ]  # fmt: skip
    with subprocess.Popen(command) as process:
        try:
            yield process.pid, f"http://{address}"
        finally:
            process.terminate()


def cpu(pid: int) -> float:
    """User and system seconds of a process so far."""
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / 100


def evaluating(url: str) -> float:
    """Seconds for which Prometheus has evaluated rules so far, by its own clock."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=60) as answer:  # noqa: S310
        lines = answer.read().decode().splitlines()
    name = "prometheus_rule_evaluation_duration_seconds_sum"
    return next(float(line.split()[-1]) for line in lines if line.startswith(name))


def groups(url: str, speed: float) -> list[str]:
    """How long each group and its dearest rules took the last time."""
    with urllib.request.urlopen(f"{url}/api/v1/rules", timeout=60) as answer:  # noqa: S310
        every = json.load(answer)["data"]["groups"]
    told = []
    for group in every:
        took, interval = group["evaluationTime"], group["interval"] * speed
        share = f"{took * 300 / interval:.3f} s in 5 minutes"
        told.append(f"  {group['name']}: {took:.3f} s every {interval:.0f} s, {share}")
        dearest = sorted(group["rules"], key=lambda rule: -rule["evaluationTime"])[:3]
        told += [f"    {1000 * rule['evaluationTime']:.0f} ms {rule['name']}" for rule in dearest]
    return told


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--tools", type=int, default=1000)
    arguments.add_argument("--minutes", type=float, default=2)
    arguments.add_argument("--speed", type=float, default=30)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="toolfault-cost-") as temporary:
        folder, began = Path(temporary), time.time()
        past = write_history(folder, given.tools, began)
        (spent, took, told), (idle, *_) = (
            measured(folder / name, given, began, past, rules=rules)
            for name, rules in (("with", True), ("without", False))
        )
    scale = 5 / given.minutes / given.speed
    print(
        f"{given.tools} tools, five minutes: {scale * took:.2f} s evaluating, "
        f"{scale * (spent - idle):.2f} s of CPU"
    )
    print("\n".join(told))


def measured(folder: Path, given: argparse.Namespace, began: float, past: Path, *, rules: bool):
    """Seconds of CPU and of evaluation of a server that has the machine to itself, and its groups."""
    with (
        totals(given.tools, began) as web,
        scraping(folder, web, past, given.speed, rules=rules) as (pid, url),
    ):
        time.sleep(WARM)
        before = cpu(pid), evaluating(url)
        time.sleep(given.minutes * MINUTE)
        return cpu(pid) - before[0], evaluating(url) - before[1], groups(url, given.speed)


if __name__ == "__main__":
    main()
