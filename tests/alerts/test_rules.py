"""The rules that are committed: generated, accepted by promtool, and tested case by case."""

import shutil
from pathlib import Path

import pytest
import yaml
from tests.alerts.checks import PROMTOOL, promtool_test, run, wrong_intervals

from toolfault.alerts.build import outputs
from toolfault.alerts.rules import by_key, files
from toolfault.alerts.spec import Spec, alert_name

COMMITTED = Path(__file__).parents[2] / "alerts"
RULE_FILES = sorted(COMMITTED.glob("*.rules.yml"))
TESTS = sorted(PROMTOOL.glob("*.yml"))


def test_the_committed_files_are_what_is_generated():
    committed = {
        path.name: path.read_bytes() for path in COMMITTED.iterdir() if path.name != "README.md"
    }
    assert committed == {name: text.encode() for name, text in outputs(Spec()).items()}


def test_promtool_accepts_the_rules():
    done = run("promtool", "check", "rules", "--lint=all", "--lint-fatal", *RULE_FILES)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("test", TESTS, ids=lambda path: path.stem)
def test_the_rules_pass_their_cases(test, tmp_path):
    for rules in RULE_FILES:
        shutil.copy(rules, tmp_path)
    assert promtool_test(test, tmp_path) == ""


def test_every_alert_has_a_case_in_which_it_fires_and_one_of_what_it_says():
    cases = [case for test in TESTS for case in yaml.safe_load(test.read_text())["tests"]]
    told = {
        one["alertname"]
        for case in cases
        for one in case.get("alert_rule_test", ())
        if one["exp_alerts"]
    }
    fires = {
        alert
        for case in cases
        for one in case.get("promql_expr_test", ())
        for sample in one["exp_samples"] or ()
        for alert in _named(sample["labels"])
    }
    every = {alert_name(key) for key in by_key(Spec())}
    assert every == told
    assert every - fires == {"ToolfaultWatchdog"}  # which never does anything else


def _named(labels: str) -> list[str]:
    _, found, rest = labels.partition('alertname="')
    return [rest.split('"')[0]] if found else []


def test_groups_are_evaluated_as_often_as_was_measured():
    assert wrong_intervals(files(Spec())) == ""
