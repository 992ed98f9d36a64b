"""The rule files, as data."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from toolfault.alerts import signals
from toolfault.alerts.annotate import annotated
from toolfault.alerts.conditions import CONDITIONS
from toolfault.alerts.places import expression, label
from toolfault.alerts.signals import MODELS, TOOLS, baseline, windows
from toolfault.alerts.spec import alert_name, seconds
from toolfault.alerts.words_pipeline import WORDS as PIPELINE_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolfault.alerts.signals import Rule
    from toolfault.alerts.spec import Alert, Spec

_SHORT_AND_MEDIUM = (
    "internal_error_spike", "many_tools_failing", "credential_rejected", "budget_exhaustion_rising",
)  # fmt: skip
_LONG = (
    "internal_errors_elevated", "permission_denied", "policy_refusals_elevated",
    "invalid_arguments_elevated",
)  # fmt: skip
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
    w, fast, slow = spec.windows, spec.windows.evaluation, spec.windows.evaluation_long
    tool_windows = [
        *windows(spec, TOOLS, w.short, (signals.INTERNAL, signals.PERMISSION_DENIED)),
        *windows(spec, TOOLS, w.medium, (signals.PERMISSION_DENIED, signals.BUDGET_EXHAUSTED)),
    ]
    long_signals = (
        signals.INTERNAL, signals.PERMISSION_DENIED, signals.REFUSED, signals.INVALID_ARGUMENT,
    )  # fmt: skip
    model_windows = [
        *windows(spec, MODELS, w.short, (signals.MODEL_ERROR,)),
        *windows(spec, MODELS, w.medium, (signals.RETRIES_EXHAUSTED,)),
    ]
    return {
        "toolfault-baseline.rules.yml": _file(
            _group("toolfault-baseline-tool", spec.baseline.bucket, baseline(spec, TOOLS)),
            _group("toolfault-baseline-model", spec.baseline.bucket, baseline(spec, MODELS)),
        ),
        "toolfault-tools.rules.yml": _file(
            _group("toolfault-tool", fast, [*tool_windows, *alerts(spec, _SHORT_AND_MEDIUM)])
        ),
        "toolfault-tools-long.rules.yml": _file(
            _group(
                "toolfault-tool-long",
                slow,
                [*windows(spec, TOOLS, w.long, long_signals), *alerts(spec, _LONG)],
            ),
        ),
        "toolfault-models.rules.yml": _file(
            _group("toolfault-model", fast, [*model_windows, *alerts(spec, _MODEL)])
        ),
        "toolfault-events.rules.yml": _file(
            _group("toolfault-events", fast, [*alerts(spec, _EVENTS)])
        ),
        "toolfault-pipeline.rules.yml": _file(
            _group("toolfault-pipeline", fast, [*alerts(spec, _PIPELINE)])
        ),
        "toolfault-silence.rules.yml": _file(
            _group("toolfault-silence", fast, [*alerts(spec, _SILENCE)])
        ),
    }


def _file(*groups: dict[str, Any]) -> dict[str, Any]:
    return {"groups": [group for group in groups if group["rules"]]}


def _group(name: str, interval: str, rules: list[Rule]) -> dict[str, Any]:
    return {"name": name, "interval": interval, "rules": rules}


def by_key(spec: Spec) -> dict[str, Alert]:
    """Every alert's settings by its field."""
    return {one.name: getattr(spec.alerts, one.name) for one in fields(spec.alerts)}


def alerts(spec: Spec, keys: tuple[str, ...]) -> Iterator[Rule]:
    """The alert rules of these fields that are not switched off."""
    for key in keys:
        alert = by_key(spec)[key]
        if alert.enabled:
            yield _alert(spec, key, alert)


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
