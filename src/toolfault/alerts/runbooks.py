"""The runbook of every alert, as data and as one page of Markdown."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolfault.alerts.annotate import WORDS
from toolfault.alerts.conditions import CONDITIONS
from toolfault.alerts.places import changes, fires_somewhere
from toolfault.alerts.rules import by_key
from toolfault.alerts.spec import alert_name, seconds
from toolfault.alerts.words import fill, spoken

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolfault.alerts.conditions import Where
    from toolfault.alerts.overrides import Change
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
    places: tuple[str, ...]  # where it is different, and how
    meaning: str
    checks: tuple[str, ...]
    causes: tuple[str, ...]
    silencing: str  # what leads to the command
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
        places=tuple(_places(spec, key, alert)),
        meaning=told(words.meaning),
        checks=tuple(map(told, words.checks)),
        causes=tuple(map(told, words.causes)),
        silencing=_silencing(key),
        silence=_silence(spec, key),
        elsewhere=_elsewhere(key),
        over=f"{told(words.over)} {_ends(spec, key, alert)}",
    )


def _markdown(one: Section) -> str:
    checks = "\n".join(f"{at}. {check}" for at, check in enumerate(one.checks, 1))
    causes = "\n".join(f"- {cause}" for cause in one.causes)
    owner = f" Owner: {one.owner}." if one.owner else ""
    places = "\n".join([*(f"- {place}" for place in one.places), "", ""]) if one.places else ""
    return f"""## {one.name}

Severity {one.severity}.{owner}

{places}**Meaning.** {one.meaning}

**First three checks**

{checks}

**Likely causes**

{causes}

**How to silence.** {one.silencing}

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


def _places(spec: Spec, key: str, alert: Alert) -> Iterator[str]:
    """One line for each place, the most specific first, as they are looked at."""
    of_places = changes(spec, key)
    yield from (_place(where, change) for where, change in of_places)
    if of_places and not alert.enabled:
        yield "Off everywhere else."


def _place(where: Where, change: Change) -> str:
    place = ", ".join(f"{label} {name}" for label, name in where.items())
    if change.enabled is False:
        return f"Off in {place}."
    given = {name: value for name, value in change.given().items() if name != "enabled"}
    how = ", ".join(f"{name} {_shown(value)}" for name, value in given.items())
    start = "Differently" if change.enabled is None else "On"
    return f"{start} in {place}{f': {how}' if how else ''}."


def _shown(value: float | str) -> str:
    return value or "none" if isinstance(value, str) else f"{value:g}"


def _silencing(key: str) -> str:
    marks = [label.upper() for label in CONDITIONS[key].labels]
    if not marks:
        return "While you work on it:"
    *others, last = marks
    named = f"{', '.join(others)} and {last}" if others else last
    return f"While you work on it; put the names from the alert in place of {named}:"


def _silence(spec: Spec, key: str) -> str:
    where = [f"--alertmanager.url={shlex.quote(one)}" for one in spec.stack.alertmanagers[:1]]
    matchers = [f"{label}={label.upper()}" for label in CONDITIONS[key].labels]
    words = [*where, "--duration=2h --author=you --comment='why'", f"alertname={alert_name(key)}"]
    return " ".join(["amtool silence add", *words, *matchers])


def _ends(spec: Spec, key: str, alert: Alert) -> str:
    window = CONDITIONS[key].window
    drains = seconds(getattr(spec.windows, window)) if window else 0
    latest = drains + seconds(alert.keep)
    if not latest:
        return "The alert then ends at the next evaluation."
    return f"The alert then ends within {spoken(f'{latest:.0f}s')} at the latest."
