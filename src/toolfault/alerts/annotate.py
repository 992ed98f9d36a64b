"""What an alert tells people, and where it leads them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from toolfault import conventions as names
from toolfault.alerts.conditions import CONDITIONS
from toolfault.alerts.promql import TOOL, number
from toolfault.alerts.spec import alert_name, seconds
from toolfault.alerts.words import Words, fill
from toolfault.alerts.words_events import WORDS as EVENT_WORDS
from toolfault.alerts.words_pipeline import WORDS as PIPELINE_WORDS
from toolfault.alerts.words_tools import WORDS as TOOL_WORDS

if TYPE_CHECKING:
    from toolfault.alerts.spec import Alert, Spec

WORDS: dict[str, Words] = {**TOOL_WORDS, **EVENT_WORDS, **PIPELINE_WORDS}
_AN_HOUR = 3600.0


def annotated(spec: Spec, key: str, alert: Alert) -> dict[str, str]:
    """The annotations of an alert."""
    words = WORDS[key]
    return {
        "summary": fill(words.summary, spec, alert, words),
        "description": fill(words.description, spec, alert, words),
        "runbook_url": spec.links.runbook(alert_name(key)),
        "dashboard_url": _dashboard(spec, key, words),
        "lookup_url": _look_up(spec, key, alert, words),
    }


def _dashboard(spec: Spec, key: str, words: Words) -> str:
    address = f"{spec.links.grafana}/d/{names.DASHBOARDS[words.dashboard]}"
    query = "&".join(f"var-{label}={_value(label)}" for label in _place(key))
    return f"{address}?{query}" if query else address


def _look_up(spec: Spec, key: str, alert: Alert, words: Words) -> str:
    """The list of errors as of the stretch in which the condition arose."""
    condition = CONDITIONS[key]
    length = seconds(getattr(spec.windows, condition.window)) if condition.window else _AN_HOUR
    since = (
        f'{{{{ with query "time() - {number(length + seconds(alert.wait))}" }}}}'
        '{{ (. | first | value | toTime).Format "2006-01-02T15:04:05Z" }}{{ end }}'
    )
    filters = [f"{label}={_value(label)}" for label in _place(key)]
    filters += [urlencode([one]) for one in (*condition.fixed.items(), *words.look_up)]
    return f"{spec.links.toolfault}/errors?{'&'.join([*filters, f'since={since}'])}"


def _place(key: str) -> list[str]:
    return [label for label in TOOL if label in CONDITIONS[key].labels]


def _value(label: str) -> str:
    return f"{{{{ $labels.{label} | urlquery }}}}"
