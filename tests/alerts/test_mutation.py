"""No constant of the specification can change without a test that notices."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from tests.alerts.checks import (
    cases_of,
    promtool_test,
    wrong_intervals,
    wrong_routes,
    wrong_scraping,
)
from tests.alerts.mutants import Mutant, mutants

from toolfault.alerts.routing import alertmanager
from toolfault.alerts.rules import files
from toolfault.alerts.scraping import prometheus
from toolfault.alerts.spec import Spec


def _data(spec: Spec) -> dict[str, Any]:
    return {
        **files(spec),
        "alertmanager.yml": alertmanager(spec),
        "prometheus.yml": prometheus(spec),
    }


SPEC = Spec()
SHIPPED = _data(SPEC)
#: Tests that notice at once, for constants whose name does not tell them; the others follow.
FIRST = {
    "bridge": "baseline_medians",
    "prior_ratio": "baseline_buckets",
    "prior_calls": "baseline_buckets",
    "bucket": "baseline_buckets",
    "stretch": "internal_error_spike",
    "near": "stretches",
    "learned": "baseline_medians",
    "replica_labels": "series",
    "long": "internal_errors_elevated",
    "sustained": "permission_denied",
    "short": "internal_error_spike",
    "medium": "budget_exhaustion_rising",
    "service": "pipeline",
    "tools": "telemetry_silent",
}
GROUPS = {
    ".".join(path): [*group]
    for path, group in groupby(mutants(SPEC), key=lambda mutant: mutant.path[:2])
}


@pytest.mark.mutation
@pytest.mark.timeout(600)
@pytest.mark.parametrize("constants", GROUPS)
def test_every_change_of_a_constant_is_noticed(constants):
    with ThreadPoolExecutor(2) as pool:
        noticed = [*pool.map(_is_noticed, GROUPS[constants])]
    survivors = [
        str(mutant) for mutant, seen in zip(GROUPS[constants], noticed, strict=True) if not seen
    ]
    assert survivors == []


def _is_noticed(mutant: Mutant) -> bool:
    data = _data(mutant.spec)
    changed = {name for name in SHIPPED if data[name] != SHIPPED[name]}
    if wrong_intervals(data):
        return True
    # only of what nothing else reads: the names of jobs are for the tests of rules
    if mutant.path[0] == "stack" and wrong_scraping(json.loads(json.dumps(data["prometheus.yml"]))):
        return True
    with TemporaryDirectory(prefix="toolfault-mutant-") as folder:
        for name, content in data.items():
            (Path(folder) / name).write_text(json.dumps(content))  # which is YAML, too
        if "alertmanager.yml" in changed and wrong_routes(Path(folder) / "alertmanager.yml"):
            return True
        return any(promtool_test(test, Path(folder)) for test in _likely(mutant, changed))


def _likely(mutant: Mutant, changed: set[str]) -> list[Path]:
    """The tests of the changed rules, those named like the constant first."""
    tests = {test for name in changed if name.endswith(".rules.yml") for test in cases_of(name)}
    first = {*mutant.path, FIRST.get(mutant.path[-1])}
    return sorted(tests, key=lambda test: (test.stem not in first, test.stat().st_size))
