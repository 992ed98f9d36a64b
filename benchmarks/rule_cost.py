"""What evaluating the alerts' rules costs: CPU seconds in five minutes, for 1,000 tools.

    python benchmarks/rule_cost.py [--tools N] [--minutes M]

Two real Prometheus servers scrape the same page of totals, one of them with the shipped rules; the
difference of their CPU time is the cost. Only the last minutes' history is there, so the sums over a
day are cheaper than after a week.
"""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from toolfault.alerts.build import build
from toolfault.alerts.scraping import prometheus
from toolfault.alerts.spec import Spec, Stack
from toolfault.taxonomy import PAIRS

COUNT = "toolfault_tool_call_duration_seconds_count"


def page(tools: int, elapsed: float) -> bytes:
    """The totals as they would be: one tool in fifty fails now and then."""
    lines = []
    for number in range(tools):
        place = f'service="s{number % 20}",environment="prod",tool="t{number}"'
        calls = int(elapsed * (1 + number % 7))
        lines.append(f"{COUNT}{{{place}}} {calls}")
        for outcome, code in PAIRS:
            bad = calls // 100 if number % 50 == 0 and outcome == "failed" else 0
            value = calls if outcome == "ok" else bad
            lines.append(
                f'toolfault_tool_calls_total{{{place},outcome="{outcome}",code="{code}"}} {value}'
            )
        lines.append(f"toolfault_budget_exhausted_total{{{place}}} 0")
    return ("\n".join(lines) + "\n").encode()


@contextmanager
def totals(tools: int):
    began = time.monotonic()

    class Page(BaseHTTPRequestHandler):
        def do_GET(self):
            body = page(tools, time.monotonic() - began) if "tools" in self.path else b""
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


@contextmanager
def scraping(folder: Path, web: str, *, rules: bool):
    folder.mkdir()
    build(folder, Spec())
    stack = Stack(replicas=(web,), collectors=(), alertmanagers=(), every="30s", token_file="")
    config = prometheus(Spec(stack=stack))
    if not rules:
        config["rule_files"] = []
    (folder / "prometheus.yml").write_text(json.dumps(config))
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


def groups(url: str) -> dict[str, float]:
    """How long each group took the last time, by the clock."""
    with urllib.request.urlopen(f"{url}/api/v1/rules", timeout=60) as answer:  # noqa: S310
        every = json.load(answer)["data"]["groups"]
    return {group["name"]: group["evaluationTime"] for group in every}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--tools", type=int, default=1000)
    arguments.add_argument("--minutes", type=float, default=5)
    given = arguments.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="toolfault-cost-")))
        web = stack.enter_context(totals(given.tools))
        with_rules = stack.enter_context(scraping(folder / "with", web, rules=True))
        without = stack.enter_context(scraping(folder / "without", web, rules=False))
        time.sleep(60)  # series are made
        before = [cpu(pid) for pid, _ in (with_rules, without)]
        time.sleep(given.minutes * 60)
        spent = [
            cpu(pid) - old for (pid, _), old in zip((with_rules, without), before, strict=True)
        ]
        scale = 5 / given.minutes
        print(f"{given.tools} tools: {scale * (spent[0] - spent[1]):.2f} CPU s in 5 minutes")
        for name, took in groups(with_rules[1]).items():
            print(f"  {name}: {1000 * took:.0f} ms by the clock")


if __name__ == "__main__":
    main()
