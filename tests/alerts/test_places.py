"""Where alerts differ by place: what the runbooks say of it, and what counts as one of many broken tools."""

import socket
from dataclasses import replace

import pytest
import yaml
from tests.alerts.checks import run

from toolfault.alerts.build import build, outputs
from toolfault.alerts.overrides import Change, Place
from toolfault.alerts.rules import files
from toolfault.alerts.runbooks import sections
from toolfault.alerts.spec import Alerts, Spec, Stack

PLACES = (
    Place(environment="staging", alerts={"internal_error_spike": Change(severity="ticket")}),
    Place(
        service="billing",
        tool="refund",
        alerts={"internal_error_spike": Change(nats=10, factor=2.5, owner="payments")},
    ),
    Place(
        service="sandbox",
        alerts={
            "internal_error_spike": Change(enabled=False),
            "unguarded_error": Change(more_than=3, owner=""),
        },
    ),
    Place(
        service="sandbox",
        environment="prod",
        tool="serious",
        alerts={"internal_error_spike": Change(enabled=True, burst=40)},
    ),
)
TOLD = (
    "On in service sandbox, environment prod, tool serious: burst 40.",
    "Differently in service billing, tool refund: owner payments, nats 10, factor 2.5.",
    "Off in service sandbox.",
    "Differently in environment staging: severity ticket.",
)


def _section(spec, name):
    return next(one for one in sections(spec) if one.name == f"Toolfault{name}")


def test_a_runbook_says_where_its_alert_is_different_the_most_specific_place_first():
    spec = Spec(places=PLACES)
    assert _section(spec, "InternalErrorSpike").places == TOLD
    assert _section(spec, "UnguardedError").places == (
        "Differently in service sandbox: owner none, more_than 3.",
    )
    assert _section(spec, "BackstopReached").places == ()
    listed = "".join(f"- {line}\n" for line in TOLD)
    assert f"somebody is woken.\n\n{listed}\n**Meaning.**" in outputs(spec)["runbooks.md"]


def test_a_runbook_of_an_alert_that_is_on_in_one_place_says_that_it_is_off_elsewhere():
    off = replace(Alerts().unguarded_error, enabled=False)
    on = Place(tool="pay", alerts={"unguarded_error": Change(enabled=True)})
    spec = Spec(alerts=replace(Alerts(), unguarded_error=off), places=(on,))
    assert _section(spec, "UnguardedError").places == ("On in tool pay.", "Off everywhere else.")


def test_a_silence_names_alertmanager_so_that_it_is_asked():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
        spec = Spec(stack=Stack(alertmanagers=(address, "http://second:9093")))
        asked = run("bash", "-c", _section(spec, "InternalErrorSpike").silence)
    assert "connection refused" in asked.stderr


def test_without_alertmanager_a_silence_names_none():
    silence = _section(Spec(stack=Stack(alertmanagers=())), "Watchdog").silence
    assert silence == (
        "amtool silence add --duration=2h --author=you --comment='why' alertname=ToolfaultWatchdog"
    )


def test_a_silence_says_where_names_are_to_be_put():
    many = _section(Spec(), "ManyToolsFailing")
    assert many.silence.endswith(" service=SERVICE environment=ENVIRONMENT")
    assert many.silencing == (
        "While you work on it; put the names from the alert in place of SERVICE and ENVIRONMENT:"
    )
    assert _section(Spec(), "RulesFailing").silencing.endswith(" in place of RULE_GROUP:")
    assert _section(Spec(), "Watchdog").silencing == "While you work on it:"


def _fires(tmp_path, spec, tools, expected):
    """Of 300 calls 100 fail in every tool of shop, where 30 are assumed to."""
    build(tmp_path, spec)
    series = [
        {"series": name, "values": values}
        for tool in tools
        for place in [f'job="j",instance="a",service="shop",environment="prod",tool="{tool}"']
        for name, values in (
            (f"toolfault_tool_call_duration_seconds_count{{{place}}}", "0+30x40"),
            (f'toolfault_tool_calls_total{{{place},outcome="failed",code="INTERNAL"}}', "0x20 100x20"),
        )
    ]  # fmt: skip
    case = {
        "interval": "30s",
        "input_series": series,
        "promql_expr_test": [
            {
                "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
                "eval_time": "12m",
                "exp_samples": [
                    {"labels": f'{{alertname="Toolfault{name}"}}', "value": count}
                    for name, count in expected.items()
                ],
            }
        ],
    }
    data = {
        "rule_files": ["toolfault-tools.rules.yml"],
        "evaluation_interval": "30s",
        "tests": [case],
    }
    (tmp_path / "case.yml").write_text(yaml.safe_dump(data))
    done = run("promtool", "test", "rules", tmp_path / "case.yml")
    assert done.returncode == 0, done.stdout + done.stderr


def _off(**where):
    return Spec(places=(Place(**where, alerts={"internal_error_spike": Change(enabled=False)}),))


@pytest.mark.parametrize(
    ("spec", "tools", "expected"),
    [
        (Spec(), "abcdef", {"InternalErrorSpike": 6, "ManyToolsFailing": 1}),
        (_off(service="shop"), "abcdef", {}),
        (_off(tool="a"), "abcdef", {"InternalErrorSpike": 5, "ManyToolsFailing": 1}),
        (_off(tool="a"), "abcde", {"InternalErrorSpike": 4}),
        # of 100 where 30 are assumed: S = 50.4
        (
            Spec(places=(Place(tool="a", alerts={"internal_error_spike": Change(nats=60)}),)),
            "abcde",
            {"InternalErrorSpike": 4},
        ),
    ],
    ids=["as shipped", "off in the service", "five left", "four left", "a limit of its own"],
)
def test_tools_whose_spike_would_not_fire_do_not_count_as_broken(tmp_path, spec, tools, expected):
    _fires(tmp_path, spec, tools, expected)


def test_without_spikes_there_are_never_many():
    off = replace(Alerts().internal_error_spike, enabled=False)
    spec = Spec(alerts=replace(Alerts(), internal_error_spike=off))
    assert "ToolfaultManyToolsFailing" not in str(files(spec))
    assert "ToolfaultManyToolsFailing" not in outputs(spec)["runbooks.md"]
