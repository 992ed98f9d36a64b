"""PromQL for the chosen environments, services and tools. Every replica shows the same totals: they count once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolfault import conventions as names
from toolfault.alerts.promql import TOOL, replicas_once, selector, total
from toolfault.alerts.signals import SIGNAL, TICKETS, TOOLS, now
from toolfault.alerts.spec import alert_name
from toolfault.dashboards.spec import Variable
from toolfault.taxonomy import Outcome

if TYPE_CHECKING:
    from toolfault.alerts.signals import Family
    from toolfault.alerts.spec import Spec

CHOSEN_PLACE = ",".join(
    f'{label}=~"${label}"' for label in (names.LABEL_ENVIRONMENT, names.LABEL_SERVICE)
)
CHOSEN = f'{CHOSEN_PLACE},{names.LABEL_TOOL}=~"${names.LABEL_TOOL}"'
#: What the look-up pages count as an error: declined and refused are answers, invalid is the model's.
ERRORS = f'outcome=~"{Outcome.FAILED}|{Outcome.TIMED_OUT}"'
NOT_ALIVE_PROOF = f'alertname!="{alert_name("watchdog")}"'
FIRING = f'alertstate="firing",alertname=~"{alert_name("")}.+",{NOT_ALIVE_PROOF}'

_ALL = total(names.TOOL_CALLS)
ENVIRONMENT = Variable(
    name=names.LABEL_ENVIRONMENT,
    title="Environment",
    query=f"label_values({_ALL}, {names.LABEL_ENVIRONMENT})",
)
SERVICE = Variable(
    name=names.LABEL_SERVICE,
    title="Service",
    query=f'label_values({_ALL}{{environment=~"$environment"}}, {names.LABEL_SERVICE})',
)
TOOL_CHOICE = Variable(
    name=names.LABEL_TOOL,
    title="Tool",
    query=f"label_values({_ALL}{{{CHOSEN_PLACE}}}, {names.LABEL_TOOL})",
)
PLACE_AND_TOOL = (ENVIRONMENT, SERVICE, TOOL_CHOICE)


def chosen(metric: str, *matchers: str) -> str:
    """The series of what is chosen, of a metric that has a tool."""
    return selector(metric, ",".join([CHOSEN, *matchers]))


def chosen_place(metric: str, *matchers: str) -> str:
    """The series of the chosen services, of a metric without a tool."""
    return selector(metric, ",".join([CHOSEN_PLACE, *matchers]))


def per_second(spec: Spec, series: str, *by: str) -> str:
    """Events a second."""
    return _sum(by, replicas_once(spec, f"rate({series}[$__rate_interval])"))


def counted(spec: Spec, series: str, *by: str, window: str = "$__rate_interval") -> str:
    """Events in each step of the graph, or in a window."""
    return _sum(by, replicas_once(spec, f"increase({series}[{window}])"))


def _sum(by: tuple[str, ...], vector: str) -> str:
    return f"sum by ({', '.join(by)}) ({vector})" if by else f"sum({vector})"


def share(part: str, whole: str) -> str:
    """A part of a whole, where there is a whole."""
    return f"{part}\n/ ({whole} > 0)"


def quantile(spec: Spec, of: float, metric: str, matchers: str = CHOSEN, *by: str) -> str:
    """A quantile of a histogram."""
    buckets = per_second(spec, selector(f"{metric}_bucket", matchers), "le", *by)
    return f"histogram_quantile({of:g}, {buckets})"


def recorded(what: str, window: str, signal: str) -> str:
    """A series of the alerts' recording rules: increase, ratio, times or surprise of a window."""
    return _recorded(TOOLS, what, window, f'{CHOSEN},{SIGNAL}="{signal}"')


def _recorded(family: Family, what: str, window: str, matchers: str) -> str:
    return selector(f"{family.bad}:{what}{window}", matchers)


def every_window(spec: Spec, what: str) -> str:
    """The same over every window, told apart by a label."""
    watched = [(family, name) for family in (TOOLS, TICKETS) for name in family.watched]
    return "\nor\n".join(
        _over(spec, family, getattr(spec.windows, name), what) for family, name in watched
    )


def _over(spec: Spec, family: Family, window: str, what: str) -> str:
    series = now(spec, family, _recorded(family, what, window, CHOSEN))
    return f'label_replace({series}, "window", "{window}", "", "")'


def narrowed(expression: str) -> str:
    """The expression of an alert as it is, of the chosen tools only."""
    return f"(\n{expression}\n)\nand on ({', '.join(TOOL)})\n{chosen(TOOLS.calls_metric)}"
