"""The linter finds each fault, and none in the rules that are committed."""

import pytest
from tests.alerts.lint import faults

from toolfault.alerts.rules import files
from toolfault.alerts.spec import Spec

NOTES = dict.fromkeys(
    ("summary", "description", "runbook_url", "dashboard_url", "lookup_url"), "Something."
)
COUNTED = {
    "record": "s:failures",
    "expr": "sum by (service, environment, tool) (increase(toolfault_tool_calls_total[5m]))",
    "labels": {"signal": "INTERNAL"},
}


def test_the_generated_rules_have_no_fault():
    assert faults(files(Spec())) == []


def _faults_of(*rules):
    return faults({"a.rules.yml": {"groups": [{"rules": [*rules]}]}})


def _alert(expr, **more):
    return {"alert": "A", "expr": expr, "labels": {}, "annotations": NOTES, **more}


@pytest.mark.parametrize(
    ("expr", "fault"),
    [
        ("up", "A: has no condition"),
        ("absent(up)", "A: absent() without waiting fires at every restart"),
        ("toolfault_nothing_total > 0", "A: nothing records or exposes toolfault_nothing_total"),
        ('up{tool="t"} == 0', "A: up has no label tool"),
        ('up{job=~"toolfault"} == 0', "A: the regular expression 'toolfault' is a plain text"),
        ('s:failures{signal="MODEL"} > 0', "A: no rule records s:failures with signal=MODEL"),
        ("increase(s:failures[5m]) > 0", "A: increase() of s:failures, which is no counter"),
        ("increase(sum(up)[5m:30s]) > 0", "A: increase() of something computed"),
        (
            "increase(toolfault_late_calls_total[1m]) > 0",
            "A: increase() over less than four scrapes",
        ),
        (
            "sum by (service) (increase(toolfault_late_calls_total[5m])) > 0",
            "A: services are not kept apart by environment",
        ),
        (
            "sum by (agent) (up) > 0",
            "A: sums by agent, which nothing has",
        ),
        ("s:failures > 0 and up", "A: sides of and never match: "),
        ("s:failures > 0 and on (job) up", "A: sides of and are matched on labels they lack"),
        (
            "increase(toolfault_late_calls_total[20d]) > 0",
            "A: looks back nearly as far as Prometheus keeps",
        ),
    ],
)
def test_a_fault_of_an_expression_is_found(expr, fault):
    found = _faults_of(COUNTED, _alert(expr))
    assert [one for one in found if one.startswith(fault)], found


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ({"labels": {"level": "{{ $value }}"}}, "has its value in a label"),
        ({"annotations": {**NOTES, "summary": ""}}, "has no summary"),
        (
            {"annotations": {**NOTES, "summary": "{{ $labels.tool }}"}},
            "speaks of the label tool, which the result lacks",
        ),
        ({"annotations": {**NOTES, "summary": "{{ $value }}"}}, "shows a bare value"),
    ],
)
def test_a_fault_of_a_text_is_found(more, fault):
    (found,) = _faults_of(_alert("up == 0", **more))
    assert fault in found


def test_a_rule_that_is_there_twice_is_found():
    assert _faults_of(COUNTED, COUNTED) == ["s:failures: is defined twice"]
