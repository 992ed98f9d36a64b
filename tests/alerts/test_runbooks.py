"""Every alert has a runbook section, and every link of every alert leads to its own."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from toolfault.alerts.annotate import WORDS
from toolfault.alerts.rules import by_key
from toolfault.alerts.runbooks import sections
from toolfault.alerts.spec import Alerts, Spec, alert_name
from toolfault.alerts.windows import Baseline, Windows
from toolfault.alerts.words import fill

COMMITTED = Path(__file__).parents[2] / "alerts"
PAGE = (COMMITTED / "runbooks.md").read_text()
SECTIONS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
ALERTS = [
    rule
    for path in sorted(COMMITTED.glob("*.rules.yml"))
    for group in yaml.safe_load(path.read_text())["groups"]
    for rule in group["rules"]
    if "alert" in rule
]
PARTS = (
    "**Meaning.**",
    "**First three checks**",
    "**Likely causes**",
    "**How to silence.**",
    "**How to know it is over.**",
)


def test_every_alert_has_its_heading_and_no_heading_is_left_over():
    assert {alert["alert"] for alert in ALERTS} == set(SECTIONS)
    assert {alert_name(key) for key in by_key(Spec())} == set(SECTIONS)


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_says_what_to_do(name):
    section = SECTIONS[name]
    assert [part for part in PARTS if part not in section] == []
    assert re.findall(r"^(\d)\. ", section, re.MULTILINE) == ["1", "2", "3"]
    assert f"alertname={name}" in section
    assert "{{" not in section.replace("{{ $labels.", "")


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_every_alert_leads_to_its_runbook_its_dashboard_and_its_calls(alert):
    notes = alert["annotations"]
    assert [*notes] == ["summary", "description", "runbook_url", "dashboard_url", "lookup_url"]
    assert notes["runbook_url"].endswith(f"#{alert['alert'].lower()}")
    assert "/d/toolfault-" in notes["dashboard_url"]
    assert notes["dashboard_url"].endswith("&to=now")
    assert "/errors?" in notes["lookup_url"]
    assert "since=" in notes["lookup_url"]
    assert notes["summary"].endswith(".")
    assert notes["description"].endswith(".")


#: No two of the numbers in these words are the same.
APART = Spec(
    windows=Windows(short="7m", stretch="3m", medium="22m", long="2h", sustained="40m"),
    baseline=Baseline(bucket="10m"),
    alerts=Alerts(internal_error_spike=replace(Alerts().internal_error_spike, apart=4)),
)
SAID = {
    "ToolfaultInternalErrorSpike": (
        "at least 4 in each of the last two stretches of 3 minutes, or at least 8 in each of the "
        "last two stretches of 7 minutes, or at least 30 within 7 minutes."
    ),
    "ToolfaultInternalErrorsElevated": (
        "over 2 hours, in at least 3 separate stretches of 10 minutes of the last 40 minutes."
    ),
    "ToolfaultCredentialRejected": (
        "at least 5 of them in 3 or more stretches of 10 minutes of the last 22 minutes, or at least "
        "30 in one such stretch"
    ),
}


@pytest.mark.parametrize("name", SAID)
def test_the_meaning_names_the_stretches_that_the_rule_counts(name):
    (section,) = (one for one in sections(APART) if one.name == name)
    assert SAID[name] in section.meaning


def test_a_new_group_ends_by_itself():
    over = SECTIONS["ToolfaultNewInternalErrorGroup"].split("**How to know it is over.**")[1]
    assert "ends by itself and does not wait for that" in over
    assert over.strip().endswith("The alert then ends within 45 minutes at the latest.")


def test_refusals_lead_to_the_reasons_that_the_list_names():
    section = SECTIONS["ToolfaultPolicyRefusalsElevated"]
    assert "1. Open `lookup_url`: which reasons are named, and which rule says no?" in section


def test_an_unknown_mark_in_a_text_is_an_error():
    spec, words = Spec(), WORDS["watchdog"]
    with pytest.raises(KeyError):
        fill("<nonsense>", spec, spec.alerts.watchdog, replace(words, summary=""))
