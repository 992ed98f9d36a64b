"""What the alerts find, how soon, and what they call for nothing: two weeks of 108 tools.

    python benchmarks/detection.py [--seed N] [--folder DIR]

Writes its own data (seeded), loads it with `promtool tsdb create-blocks-from`, and evaluates the shipped
rules in a real Prometheus, beside a fixed ratio and a multi-window burn rate. Needs `prometheus` and
`promtool`; takes some minutes and about 1 GB of disk.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from toolfault.alerts.rules import files
from toolfault.alerts.signals import TICKETS
from toolfault.alerts.spec import Spec, seconds

SEED = 20261130
START = 1_780_272_000  # 2026-06-01T00:00:00Z
DAY, MINUTE = 86_400, 60
DAYS, SCRAPE = 14, 60
LEARNED = 7  # days; before that nothing is judged
PLACE = 'service="s",environment="prod"'
COUNT = "toolfault_tool_call_duration_seconds_count"
BAD = "toolfault_tool_calls_total"
RATES = {"1/min": 1 / 60, "6/min": 0.1, "1/s": 1.0, "100/s": 100.0, "10000/s": 10_000.0}


@dataclass(frozen=True)
class Incident:
    """A stretch in which a tool fails more than usual."""

    size: str
    begins: int
    ends: int
    ratio: float


@dataclass
class Tool:
    """How a tool is called and how it fails."""

    name: str
    kind: str
    speed: str
    base: float = 0.002
    diurnal: bool = False
    nightly: bool = False
    creeps: bool = False
    bursts: bool = False
    gaps: bool = False
    seed: int = SEED
    begins: int = 0
    incidents: list[Incident] = field(default_factory=list)

    def rate(self, at: int) -> float:
        rate = RATES[self.speed]
        if self.diurnal:
            hour = at % DAY / 3600
            rate *= 0.1 + 0.9 * max(0.0, 1 - abs(hour - 14) / 10)
        return rate

    def ratio(self, at: int) -> float:
        for one in self.incidents:
            if one.begins <= at < one.ends:
                return one.ratio
        ratio = self.base
        if self.creeps:
            ratio *= 1 + 4 * at / (DAYS * DAY)
        if self.nightly:
            begins = 2 * 3600 + random.Random(f"{self.seed}{self.name}{at // DAY}").randint(
                -300, 300
            )
            if begins <= at % DAY < begins + 2400:
                ratio = min(0.5, 20 * ratio)
        return ratio


SIZES = {"100 %": (1.0, 40), "50 %": (0.5, 40), "x10": (None, 40), "10 % for 6 h": (0.1, 360)}


def tools(seed: int = SEED) -> list[Tool]:
    """Tools of every kind and speed; a third of them has an incident or two."""
    dice = random.Random(seed)
    made = []
    for speed in RATES:
        for kind in ("quiet", "diurnal", "nightly", "creep", "bursts", "gaps", "rough"):
            made += [_tool(f"{kind}_{number}_{speed}", kind, speed) for number in range(2)]
        for size, (ratio, minutes) in SIZES.items():
            made += [
                _with_incidents(
                    dice, _tool(f"fails_{size}_{n}_{speed}", "quiet", speed), size, ratio, minutes
                )
                for n in range(1 if size == "10 % for 6 h" else 2)
            ]
    new = [_tool(f"new_{speed}", "quiet", speed) for speed in ("6/min", "1/s", "100/s")]
    for tool in new:
        tool.begins = 10 * DAY
        tool.incidents = [Incident("100 %, new tool", 10 * DAY + 1800, 10 * DAY + 4200, 1.0)]
    return [replace(tool, seed=seed) for tool in made + new]


def _tool(name: str, kind: str, speed: str) -> Tool:
    name = name.replace(" ", "").replace("%", "").replace("/", "_per_")
    return Tool(
        name, kind, speed,
        base=0.03 if kind == "rough" else 0.002,
        diurnal=kind == "diurnal", nightly=kind == "nightly", creeps=kind == "creep",
        bursts=kind == "bursts", gaps=kind == "gaps",
    )  # fmt: skip


def _with_incidents(
    dice: random.Random, tool: Tool, size: str, ratio: float | None, minutes: int
) -> Tool:
    for day in (8, 11):
        begins = day * DAY + dice.randrange(6 * 3600, 17 * 3600, MINUTE)
        tool.incidents.append(
            Incident(size, begins, begins + minutes * MINUTE, ratio or 10 * tool.base)
        )
    return tool


def _poisson(dice: random.Random, mean: float) -> int:
    if mean > 50:
        return max(0, round(dice.gauss(mean, mean**0.5)))
    limit, count, product = 2.718281828459045**-mean, 0, dice.random()
    while product > limit:
        count, product = count + 1, product * dice.random()
    return count


def lost_scrapes(seed: int, *, gaps: bool) -> set[int]:
    """One in 200 fails; of some targets all do, for three hours every other day."""
    dice = random.Random(f"{seed}{gaps}")
    return {
        at
        for at in range(0, DAYS * DAY, SCRAPE)
        if dice.random() < 0.005 or (gaps and at % (2 * DAY) < 3 * 3600)
    }


def samples(tool: Tool, lost: set[int]) -> list[tuple[int, int, int]]:
    """Time, calls and INTERNAL errors so far, at each scrape that was not lost."""
    dice = random.Random(f"{tool.seed}{tool.name}")
    calls = bad = later = 0
    kept = []
    for at in range(tool.begins, DAYS * DAY, SCRAPE):
        made = _poisson(dice, tool.rate(at) * SCRAPE)
        failed = min(made, _poisson(dice, made * tool.ratio(at)))
        extra, later = later, 0
        if tool.bursts and dice.random() < 1 / 720:  # one user, twice a day, over two scrapes
            size = dice.randint(1, 8)
            now = dice.randint(0, size)
            extra, later = extra + now, size - now
        calls, bad = calls + made + extra, bad + failed + extra
        if at not in lost:
            kept.append((at, calls, bad))
    return kept


def write_openmetrics(path: Path, every: list[Tool]) -> None:
    lost = {gaps: lost_scrapes(every[0].seed, gaps=gaps) for gaps in (False, True)}
    data = {tool.name: (tool.gaps, samples(tool, lost[tool.gaps])) for tool in every}
    target = {gaps: f'job="toolfault-tools",instance="{"b" if gaps else "a"}"' for gaps in lost}
    with path.open("w") as out:
        out.write(f"# TYPE {COUNT.removesuffix('_count')} histogram\n")
        for name, (gaps, kept) in data.items():
            series = f'{COUNT}{{{target[gaps]},{PLACE},tool="{name}"}}'
            out.writelines(f"{series} {calls} {START + at}\n" for at, calls, _ in kept)
        out.write(f"# TYPE {BAD.removesuffix('_total')} counter\n")
        for name, (gaps, kept) in data.items():
            series = (
                f'{BAD}{{{target[gaps]},{PLACE},tool="{name}",outcome="failed",code="INTERNAL"}}'
            )
            out.writelines(f"{series} {bad} {START + at}\n" for at, _, bad in kept)
        out.write("# TYPE up gauge\n")
        for gaps, missed in lost.items():
            out.writelines(
                f"up{{{target[gaps]}}} {int(at not in missed)} {START + at}\n"
                for at in range(0, DAYS * DAY, SCRAPE)
            )
        out.write("# EOF\n")


# --- the shipped rules, in the order in which they read one another ------------------------------


def stages(spec: Spec) -> list[tuple[str, list[dict]]]:
    """Step of evaluation and rules; each stage reads only what earlier ones wrote."""
    rules = [
        rule
        for file in files(spec).values()
        for group in file["groups"]
        for rule in group["rules"]
        if rule.get("record", "").startswith("service_environment_tool")
        and rule.get("labels", {"signal": "INTERNAL"})["signal"] == "INTERNAL"
        and not rule["record"].endswith(spec.windows.medium)
        and TICKETS.pace not in rule["record"]
    ]
    learned, bucket, quick = (
        spec.baseline.learned, spec.baseline.bucket, spec.windows.evaluation,
    )  # fmt: skip
    order = [
        (bucket, (":bucket", ":first")),
        (learned, ("_calls:day", "toolfault:day")),
        (learned, ("baseline:day",)),
        (learned, (":ratio_of_day",)),
        (learned, ("baseline:hour",)),
        (learned, (":ratio_of_hour",)),
        (learned, ("baseline:ratio",)),
        (learned, ("baseline:ratio5m", "baseline:ratio1h")),
        (bucket, ("toolfault:ratio1h",)),
        (bucket, (":increase1h", ":stretches1h", ":times1h")),
        (bucket, (":surprise1h",)),
        (quick, ("toolfault:increase5m",)),
        (quick, ("_calls:increase5m", ":risen5m")),
        (quick, ("toolfault:ratio5m",)),
        (quick, (":times5m",)),
        (quick, (":surprise5m",)),
    ]
    return [
        (step, [rule for rule in rules if rule["record"].endswith(endings)])
        for step, endings in order
    ]


@contextmanager
def prometheus(data: Path, lookback: str = "5m"):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    config = data.parent / "prometheus.yml"
    config.write_text("{}")
    command = [
        "prometheus", f"--config.file={config}", f"--storage.tsdb.path={data}",
        "--storage.tsdb.retention.time=100y", f"--web.listen-address={address}", "--log.level=error",
        "--query.timeout=10m",
        f"--query.lookback-delta={lookback}",
    ]  # fmt: skip
    with subprocess.Popen(command) as process:
        try:
            _wait(f"http://{address}/-/ready")
            yield f"http://{address}"
        finally:
            process.terminate()


def _wait(address: str) -> None:
    for _ in range(600):
        try:
            urllib.request.urlopen(address, timeout=5).close()  # noqa: S310
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit(f"{address} does not answer")


def lookback(step: str) -> str:
    """Backfilled series have no staleness markers: what is no longer recorded or scraped must not be
    seen again."""
    return f"{min(seconds(step), 300) - 1:.0f}s"


def record(data: Path, spec: Spec) -> None:
    # of one name, as file and group decide at which second of its interval a group is evaluated
    rules_file = "rules.yml"
    for number, (step, rules) in enumerate(stages(spec)):
        began = time.monotonic()
        groups = [{"name": "stage", "rules": rules}]
        (data.parent / rules_file).write_text(json.dumps({"groups": groups}))
        since = START if step != spec.windows.evaluation else START + LEARNED * DAY
        # what is scraped is scraped every minute
        scraped = number == 0
        with prometheus(data, lookback("1m" if scraped else step)) as url:
            subprocess.run(
                [
                    "promtool", "tsdb", "create-blocks-from", "rules", f"--start={since}",
                    f"--end={START + DAYS * DAY}", f"--eval-interval={step}", f"--url={url}",
                    f"--output-dir={data.parent / 'new'}", rules_file,
                ],
                check=True, stdout=subprocess.DEVNULL, cwd=data.parent,
            )  # fmt: skip
        for block in (data.parent / "new").iterdir():
            shutil.move(block, data / block.name)
        print(
            f"  stage {number + 1}: {len(rules)} rules, {time.monotonic() - began:.0f} s",
            flush=True,
        )


class Detector(NamedTuple):
    """An expression, how long it waits and is kept, and how often it is evaluated."""

    expr: str
    wait: str
    keep: str
    every: str


def _rate(window: str) -> str:
    bad = f'sum by (tool) (increase({BAD}{{code="INTERNAL"}}[{window}]))'
    return f"{bad} / (sum by (tool) (increase({COUNT}[{window}])) > 0)"


def detectors(spec: Spec) -> dict[str, list[Detector]]:
    """Name: what it is made of."""
    alerts = {
        rule["alert"]: Detector(
            rule["expr"], rule.get("for", "0s"), rule["keep_firing_for"], group["interval"]
        )
        for file in files(spec).values()
        for group in file["groups"]
        for rule in group["rules"]
        if rule.get("alert") in ("ToolfaultInternalErrorSpike", "ToolfaultInternalErrorsElevated")
    }
    spike, elevated = alerts.values()
    fixed = Detector(f"{_rate('5m')} > 0.05", "2m", "10m", "1m")
    burn = [
        Detector(f"{_rate('1h')} > 0.144 and {_rate('5m')} > 0.144", "1m", "10m", "1m"),
        Detector(f"{_rate('6h')} > 0.06 and {_rate('30m')} > 0.06", "1m", "10m", "1m"),
    ]
    return {
        "spike (critical)": [spike],
        "elevated (warning)": [elevated],
        "both": [spike, elevated],
        "fixed ratio: 5 min > 5 %": [fixed],
        "burn rate, SLO 99 %": burn,
    }


def firing(url: str, detector: Detector) -> dict[str, list[tuple[int, int]]]:
    """Stretches in which it fires, by tool, in seconds since the start."""
    step = int(seconds(detector.every))
    true: dict[str, list[int]] = {}
    for day in range(LEARNED, DAYS):
        begins = START + day * DAY
        query = {
            "query": detector.expr, "start": begins, "end": begins + DAY - step, "step": str(step),
        }  # fmt: skip
        body = urllib.parse.urlencode(query).encode()
        with urllib.request.urlopen(f"{url}/api/v1/query_range", body, timeout=600) as answer:  # noqa: S310
            for series in json.load(answer)["data"]["result"]:
                times = true.setdefault(series["metric"]["tool"], [])
                times += [int(at) - START for at, _ in series["values"]]
    return {tool: _stretches(times, detector) for tool, times in true.items()}


def _stretches(times: list[int], detector: Detector) -> list[tuple[int, int]]:
    step, wait, keep = map(seconds, (detector.every, detector.wait, detector.keep))
    fired: list[tuple[int, int]] = []
    since = last = None
    for at in times:
        if last is None or at - last > step:
            since = at
        last = at
        if at - since >= wait:
            if fired and at - fired[-1][1] <= keep + step:
                fired[-1] = (fired[-1][0], at)
            else:
                fired.append((at, at))
    return fired


def judge(every: list[Tool], fired: list[dict[str, list[tuple[int, int]]]]) -> tuple[int, dict]:
    """Alerts for nothing, and for each size and speed the minutes until incidents were found."""
    false, found = 0, {}
    for tool in every:
        stretches = [one for each in fired for one in each.get(tool.name, ())]
        spans = [(one.begins, one.ends + 3600) for one in tool.incidents]
        false += sum(
            not any(begins <= end and start <= ends for begins, ends in spans)
            for start, end in stretches
        )
        for one in tool.incidents:
            starts = [s for s, e in stretches if s <= one.ends and e >= one.begins]
            cell = found.setdefault((one.size, tool.speed), [])
            cell.append((max(min(starts), one.begins) - one.begins) / 60 if starts else None)
    return false, found


def table(every: list[Tool], results: dict[str, tuple[int, dict]]) -> str:
    cells = [
        (size, speed)
        for size in [*SIZES, "100 %, new tool"]
        for speed in RATES
        if any((size, speed) in found for _, found in results.values())
    ]
    lines = [
        "| incident | calls | " + " | ".join(results) + " |",
        "| --- | --- |" + " --- |" * len(results),
        "| none: called for nothing | all | "
        + " | ".join(str(false) for false, _ in results.values())
        + " |",
    ]
    for size, speed in cells:
        told = [_told(found.get((size, speed), [])) for _, found in results.values()]
        lines.append(f"| {size} | {speed} | " + " | ".join(told) + " |")
    days = len(every) * (DAYS - LEARNED)
    return "\n".join([*lines, "", f"{len(every)} tools, {days} tool-days judged."])


def _told(minutes: list[float | None]) -> str:
    found = [one for one in minutes if one is not None]
    if not found:
        return f"0/{len(minutes)}"
    return f"{len(found)}/{len(minutes)}, {statistics.median(found):.0f} min"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seed", type=int, default=SEED)
    arguments.add_argument(
        "--folder", type=Path, help="where to work; a temporary one if not given"
    )
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="toolfault-detection-") as temporary:
        work = (given.folder or Path(temporary)).resolve()
        work.mkdir(parents=True, exist_ok=True)
        run(work, work / "data", tools(given.seed))


def run(work: Path, data: Path, every: list[Tool]) -> None:
    spec, began = Spec(), time.monotonic()
    raw = work / "raw.om"
    write_openmetrics(raw, every)
    print(f"{len(every)} tools written, {time.monotonic() - began:.0f} s", flush=True)
    subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "--max-block-duration=500h", "openmetrics", raw, data],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    raw.unlink()
    print(f"loaded, {time.monotonic() - began:.0f} s", flush=True)
    record(data, spec)
    print(table(every, judged(data, spec, every)))


def judged(data: Path, spec: Spec, every: list[Tool]) -> dict[str, tuple[int, dict]]:
    named = detectors(spec)
    seen: dict[Detector, dict] = {}
    for step in ("1m", spec.baseline.bucket):
        with prometheus(data, lookback(step)) as url:
            for one in {part for parts in named.values() for part in parts if part.every == step}:
                seen[one] = firing(url, one)
    return {name: judge(every, [seen[one] for one in parts]) for name, parts in named.items()}


if __name__ == "__main__":
    main()
