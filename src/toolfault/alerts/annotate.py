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
    """The annotations of an alert; both links lead to the stretch in which the condition arose."""
    words, window = WORDS[key], CONDITIONS[key].window
    length = seconds(getattr(spec.windows, window)) if window else _AN_HOUR
    # what is recorded seldom is as old as that when it is told
    age = seconds(spec.baseline.learned) if window == "slow" else 0
    back = length + age + seconds(alert.wait)
    return {
        "summary": fill(words.summary, spec, alert, words),
        "description": fill(words.description, spec, alert, words),
        "runbook_url": spec.links.runbook(alert_name(key)),
        "dashboard_url": _dashboard(spec, key, words, back),
        "lookup_url": _look_up(spec, key, words, back),
    }


def _dashboard(spec: Spec, key: str, words: Words, back: float) -> str:
    """With an hour more, to see what it was like before."""
    address = f"{spec.links.grafana}/d/{names.DASHBOARDS[words.dashboard]}"
    since = _asked(
        f"1000 * (time() - {number(back + _AN_HOUR)})", '. | first | value | printf "%.0f"'
    )
    query = [f"var-{label}={_value(label)}" for label in _place(key)]
    return f"{address}?{'&'.join([*query, f'from={since}', 'to=now'])}"


def _look_up(spec: Spec, key: str, words: Words, back: float) -> str:
    since = _asked(
        f"time() - {number(back)}", '(. | first | value | toTime).Format "2006-01-02T15:04:05Z"'
    )
    filters = [f"{label}={_value(label)}" for label in _place(key)]
    filters += [urlencode([one]) for one in (*CONDITIONS[key].fixed.items(), *words.look_up)]
    return f"{spec.links.toolfault}/errors?{'&'.join([*filters, f'since={since}'])}"


def _asked(expression: str, shown: str) -> str:
    """The answer to a query when the alert fires."""
    return f'{{{{ with query "{expression}" }}}}{{{{ {shown} }}}}{{{{ end }}}}'


def _place(key: str) -> list[str]:
    return [label for label in TOOL if label in CONDITIONS[key].labels]


def _value(label: str) -> str:
    return f"{{{{ $labels.{label} | urlquery }}}}"
