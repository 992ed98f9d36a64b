"""The runbook of every alert, as one page of Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolfault.alerts.annotate import WORDS
from toolfault.alerts.conditions import CONDITIONS
from toolfault.alerts.rules import by_key
from toolfault.alerts.spec import alert_name, seconds
from toolfault.alerts.words import fill, spoken

if TYPE_CHECKING:
    from toolfault.alerts.spec import Alert, Spec

_MEANT = {
    "critical": "critical: somebody is woken",
    "warning": "warning: read it within the hour",
    "ticket": "ticket: read it this week",
    "none": "none: for the dead man's switch",
}
_INTRODUCTION = """# Runbooks

One section for each alert. `lookup_url` and `dashboard_url` in the alert lead to the calls and the
curves that made it fire. Thresholds and texts come from the alerts' settings; change them there.
"""


def runbooks(spec: Spec) -> str:
    """The page."""
    sections = [_section(spec, key, alert) for key, alert in by_key(spec).items() if alert.enabled]
    return "\n".join([_INTRODUCTION, *sections])


def _section(spec: Spec, key: str, alert: Alert) -> str:
    words = WORDS[key]

    def told(text: str) -> str:
        return fill(text, spec, alert, words)

    checks = "\n".join(f"{at}. {told(check)}" for at, check in enumerate(words.checks, 1))
    causes = "\n".join(f"- {told(cause)}" for cause in words.causes)
    owner = f" Owner: {alert.owner}." if alert.owner else ""
    return f"""## {alert_name(key)}

Severity {_MEANT[alert.severity]}.{owner}

**Meaning.** {told(words.meaning)}

**First three checks**

{checks}

**Likely causes**

{causes}

**How to silence.** While you work on it:

```sh
{_silence(key)}
```

{_elsewhere(key)}

**How to know it is over.** {told(words.over)} {_ends(spec, key, alert)}
"""


def _elsewhere(key: str) -> str:
    if CONDITIONS[key].base is None:
        return (
            "It is the same everywhere: `enabled: false` in the alerts' settings switches it off."
        )
    return "Where it should never fire, switch it off for that place in the alerts' settings."


def _silence(key: str) -> str:
    matchers = " ".join(f'{label}="..."' for label in CONDITIONS[key].labels)
    return (
        f"amtool silence add --duration=2h --author=you --comment='why' "
        f"alertname={alert_name(key)} {matchers}".rstrip()
    )


def _ends(spec: Spec, key: str, alert: Alert) -> str:
    window = CONDITIONS[key].window
    drains = seconds(getattr(spec.windows, window)) if window else 0
    latest = drains + seconds(alert.keep)
    if not latest:
        return "The alert then ends at the next evaluation."
    return f"The alert then ends within {spoken(f'{latest:.0f}s')} at the latest."
