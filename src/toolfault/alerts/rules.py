"""The rule files, as data."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from toolfault.alerts import signals
from toolfault.alerts.annotate import annotated
from toolfault.alerts.baseline import baseline
from toolfault.alerts.conditions import CONDITIONS
from toolfault.alerts.places import expression, fires_somewhere, label, lowest
from toolfault.alerts.signals import (
    MODELS,
    TICKETS,
    TOOLS,
    bucket_of_place,
    buckets,
    first_values,
    long_window,
    risen,
    short_window,
    stretches,
    surprises,
)
from toolfault.alerts.spec import alert_name, seconds
from toolfault.alerts.words_pipeline import WORDS as PIPELINE_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolfault.alerts.signals import Family, Rule
    from toolfault.alerts.spec import Alert, Spec

_SHORT = ("internal_error_spike", "many_tools_failing")
_LASTING = ("internal_errors_elevated", "permission_denied")
_LONGER = ("credential_rejected", "budget_exhaustion_rising", *_LASTING)
_TICKETS = ("policy_refusals_elevated", "invalid_arguments_elevated")
_MODEL = ("model_error_spike", "model_retries_exhausted")
_EVENTS = (
    "unguarded_error", "backstop_reached", "unregistered_tool_called", "run_limit_exceeded",
    "new_internal_error_group", "dead_letters_waiting",
)  # fmt: skip
_SILENCE = ("telemetry_silent",)  # needs a week of history: by itself, so that its tests are quick
_PIPELINE = tuple(key for key in PIPELINE_WORDS if key not in _SILENCE)


def files(spec: Spec) -> dict[str, dict[str, Any]]:
    """Rule files by name.

    Windows and the alerts that read them share a group, as the rules of one group run in order: an
    alert never reads the round before.
    """
    quick, stretch = spec.windows.evaluation, spec.baseline.bucket
    learned = spec.baseline.learned
    return {
        "toolfault-baseline.rules.yml": _file(
            *(
                _group(f"toolfault-baseline-{family.subject}", learned, baseline(spec, family))
                for family in (TOOLS, TICKETS, MODELS)
            )
        ),
        "toolfault-tools.rules.yml": _file(
            _group("toolfault-tool", quick, [*_short(spec), *alerts(spec, _SHORT)])
        ),
        "toolfault-tools-long.rules.yml": _file(
            _group("toolfault-tool-long", stretch, [*_longer(spec), *alerts(spec, _LONGER)])
        ),
        "toolfault-tickets.rules.yml": _file(
            _group("toolfault-ticket", learned, _slow(spec)),
            # more often, so that what fires can be seen at any time
            _group("toolfault-ticket-alerts", stretch, [*alerts(spec, _TICKETS)]),
        ),
        "toolfault-models.rules.yml": _file(
            _group("toolfault-model", quick, [*_of_models(spec), *alerts(spec, _MODEL)]),
            _group("toolfault-model-buckets", stretch, _stretches_of_models(spec)),
        ),
        "toolfault-events.rules.yml": _file(
            _group("toolfault-events", stretch, [*alerts(spec, _EVENTS)])
        ),
        "toolfault-pipeline.rules.yml": _file(
            _group("toolfault-pipeline", quick, [*alerts(spec, _PIPELINE)])
        ),
        "toolfault-silence.rules.yml": _file(
            _group("toolfault-silence", stretch, [bucket_of_place(TOOLS), *alerts(spec, _SILENCE)])
        ),
    }


def _short(spec: Spec) -> list[Rule]:
    """Of what no place pages on, nothing is recorded."""
    apart, burst = (lowest(spec, "internal_error_spike", name) for name in ("apart", "burst"))
    return [
        *short_window(spec, TOOLS, "short", min(apart, burst)),
        risen(spec, TOOLS, "short"),
    ]


def _longer(spec: Spec) -> list[Rule]:
    exhausted, denied = signals.BUDGET_EXHAUSTED, signals.PERMISSION_DENIED
    return [
        *buckets(spec, TOOLS),
        *first_values(spec, TOOLS, TOOLS.watched["short"]),
        *long_window(TOOLS, spec.windows.medium, (exhausted, denied), 0),
        *surprises(spec, TOOLS, "medium"),
        *_lasting(spec, TOOLS, "long", _LASTING),
    ]


def _slow(spec: Spec) -> list[Rule]:
    return [*buckets(spec, TICKETS), *_lasting(spec, TICKETS, "slow", _TICKETS)]


def _lasting(spec: Spec, family: Family, name: str, keys: tuple[str, ...]) -> list[Rule]:
    window, floor = getattr(spec.windows, name), min(lowest(spec, key, "floor") for key in keys)
    return [
        *long_window(family, window, family.watched[name], floor),
        stretches(spec, family, name),
        *surprises(spec, family, name),
    ]


def _of_models(spec: Spec) -> list[Rule]:
    return [*short_window(spec, MODELS, "short"), *short_window(spec, MODELS, "medium")]


def _stretches_of_models(spec: Spec) -> list[Rule]:
    return [*buckets(spec, MODELS), *first_values(spec, MODELS, tuple(MODELS.signals))]


def _file(*groups: dict[str, Any]) -> dict[str, Any]:
    return {"groups": [group for group in groups if group["rules"]]}


def _group(name: str, interval: str, rules: list[Rule]) -> dict[str, Any]:
    return {"name": name, "interval": interval, "rules": rules}


def by_key(spec: Spec) -> dict[str, Alert]:
    """Every alert's settings by its field."""
    return {one.name: getattr(spec.alerts, one.name) for one in fields(spec.alerts)}


def alerts(spec: Spec, keys: tuple[str, ...]) -> Iterator[Rule]:
    """The alert rules of these fields that are not switched off everywhere."""
    for key in keys:
        if fires_somewhere(spec, key):
            yield _alert(spec, key, by_key(spec)[key])


def _alert(spec: Spec, key: str, alert: Alert) -> Rule:
    rule: Rule = {"alert": alert_name(key), "expr": expression(spec, key)}
    if seconds(alert.wait):
        rule["for"] = alert.wait
    if seconds(alert.keep):
        rule["keep_firing_for"] = alert.keep
    rule["labels"] = {"severity": label(spec, key, "severity"), **CONDITIONS[key].fixed}
    if owner := label(spec, key, "owner"):
        rule["labels"]["owner"] = owner
    rule["annotations"] = annotated(spec, key, alert)
    return rule
