"""The runbook of every alert, as data and as one page of Markdown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolfault.alerts.annotate import WORDS
from toolfault.alerts.conditions import CONDITIONS
from toolfault.alerts.places import fires_somewhere
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
INTRODUCTION = (
    "One section for each alert. `lookup_url` and `dashboard_url` in the alert lead to the calls and the\n"
    "curves that made it fire. Thresholds and texts come from the alerts' settings; change them there."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """The runbook of one alert; what stands in backquotes is code."""

    name: str
    severity: str
    owner: str
    meaning: str
    checks: tuple[str, ...]
    causes: tuple[str, ...]
    silence: str  # a command
    elsewhere: str
    over: str

    @property
    def anchor(self) -> str:
        """What links to the section end in."""
        return self.name.lower()


def sections(spec: Spec) -> list[Section]:
    """The runbook of every alert that fires somewhere."""
    return [
        _section(spec, key, alert)
        for key, alert in by_key(spec).items()
        if fires_somewhere(spec, key)
    ]


def runbooks(spec: Spec) -> str:
    """All of them as one page of Markdown."""
    return "\n".join([f"# Runbooks\n\n{INTRODUCTION}\n", *map(_markdown, sections(spec))])


def _section(spec: Spec, key: str, alert: Alert) -> Section:
    words = WORDS[key]

    def told(text: str) -> str:
        return fill(text, spec, alert, words)

    return Section(
        name=alert_name(key),
        severity=_MEANT[alert.severity],
        owner=alert.owner,
        meaning=told(words.meaning),
        checks=tuple(map(told, words.checks)),
        causes=tuple(map(told, words.causes)),
        silence=_silence(key),
        elsewhere=_elsewhere(key),
        over=f"{told(words.over)} {_ends(spec, key, alert)}",
    )


def _markdown(one: Section) -> str:
    checks = "\n".join(f"{at}. {check}" for at, check in enumerate(one.checks, 1))
    causes = "\n".join(f"- {cause}" for cause in one.causes)
    owner = f" Owner: {one.owner}." if one.owner else ""
    return f"""## {one.name}

Severity {one.severity}.{owner}

**Meaning.** {one.meaning}

**First three checks**

{checks}

**Likely causes**

{causes}

**How to silence.** While you work on it:

```sh
{one.silence}
```

{one.elsewhere}

**How to know it is over.** {one.over}
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
