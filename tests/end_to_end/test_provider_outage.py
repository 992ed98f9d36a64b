"""The example of the outage, as its story is in the look-up and in the metrics of a real service."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import httpx
from prometheus_client.parser import text_string_to_metric_families
from tests.end_to_end.harness import environment

EXAMPLE = Path(__file__).parents[2] / "examples" / "provider_outage.py"
NAMES = ("calls", "attempts", "errors", "retries_exhausted")


def model_totals(service):
    """Of the example's service: the totals of its model calls, and the letters that wait."""
    found = {}
    text = httpx.get(f"{service.web}/metrics/tools").text
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.labels.get("service") == "order-support":
                found[sample.name] = found.get(sample.name, 0) + sample.value
    totals = [found.get(f"toolfault_model_{name}_total") for name in NAMES]
    return [*totals, found.get("toolfault_dead_letters_waiting")]


def test_the_story_of_the_outage_can_be_looked_up_and_counted(service):
    settings = environment(OTEL_EXPORTER_OTLP_ENDPOINT=service.http)
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)], env=settings, capture_output=True, text=True, check=True
    )
    told = json.loads(done.stdout)

    deadline = time.monotonic() + 30
    expected = [17, 25, 2, 2, 1]
    while (totals := model_totals(service)) != expected and time.monotonic() < deadline:
        time.sleep(0.1)
    assert totals == expected

    (reference,) = re.findall(r"\(ref ([^)]*)\)", told["a slow order"])
    match = service.wait_for(reference)
    assert (match["tool"], match["outcome"], match["action"]) == (
        "get_order",
        "timed_out",
        "stop_and_tell_user",
    )
    assert service.calls("a refund, then the outage")["refund_order"][:3] == ("ok", None, "applied")
    letters = httpx.get(f"{service.web}/api/v1/dead-letters?service=order-support").json()["items"]
    letter = httpx.get(f"{service.web}/api/v1/dead-letters/{letters[0]['id']}").json()
    assert (letter["payload"], letter["reason"]) == (
        {"conversation": "an outage from the start"},
        "upstream_unavailable",
    )
