"""What the alerts are: every threshold, window, severity, owner and link, with the shipped values.

The numbers were chosen by measurement; `docs/alerting.md` shows what they find and what they miss.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from pydantic import Field

from toolfault.alerts.overrides import Place
from toolfault.alerts.values import (
    CLOSED,
    Address,
    Apart,
    Base,
    Buckets,
    Burst,
    Calls,
    Denied,
    Duration,
    Enabled,
    Factor,
    Floor,
    Least,
    MoreThan,
    Name,
    Nats,
    Owner,
    Severity,
    Tools,
    Window,
    means,
)
from toolfault.alerts.windows import Baseline, Windows

_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def seconds(duration: str) -> float:
    """A Prometheus duration in seconds."""
    parts = re.findall(r"([0-9]+)(ms|[smhdw])", duration)
    return sum(int(amount) * _SECONDS[unit] for amount, unit in parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """What every alert has."""

    __pydantic_config__: ClassVar = CLOSED

    severity: Severity
    wait: Annotated[Duration, means("The condition holds this long before it fires.")] = "0s"
    keep: Annotated[Duration, means("It keeps firing this long after the condition ended.")] = "0s"
    owner: Owner = ""
    enabled: Enabled = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Above(Alert):
    """Far above what the subject's own history predicts, and enough to matter."""

    nats: Nats
    factor: Factor
    floor: Floor


@dataclass(frozen=True, slots=True, kw_only=True)
class Spike(Above):
    """Above the usual, and no single conversation's doing: it goes on, or is more than two could do."""

    apart: Apart = 3
    burst: Burst = 30  # in the short window: 2 x 12 calls of a run, rounded up


@dataclass(frozen=True, slots=True, kw_only=True)
class Sustained(Above):
    """Above the usual in several separate stretches: not one user's burst."""

    buckets: Buckets = 3  # of those in `Windows.sustained`


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected(Alert):
    """Most calls denied: spread over time, or more than two runs could make."""

    share: Denied = 0.5
    calls: Calls = 5
    buckets: Buckets = 3
    burst: Burst = 30  # in one of them: 2 x 12 calls of a run, rounded up


@dataclass(frozen=True, slots=True, kw_only=True)
class Several(Alert):
    """Many tools of a service at once."""

    tools: Tools = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Count(Alert):
    """Things that should not be there, counted."""

    more_than: MoreThan = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AtLeast(Alert):
    """Something there should be enough of."""

    least: Least


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """Prometheus' names of the scrape jobs, and what differs between replicas."""

    __pydantic_config__: ClassVar = CLOSED

    service: Annotated[Name, means("Of /metrics of every replica.")] = "toolfault"
    tools: Annotated[Name, means("Of /metrics/tools of every replica.")] = "toolfault-tools"
    collector: Annotated[Name, means("Of the OpenTelemetry Collector.")] = "otel-collector"
    replica_labels: Annotated[tuple[Name, ...], means("What differs between replicas.")] = (
        "instance",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Where people are led."""

    __pydantic_config__: ClassVar = CLOSED

    toolfault: Annotated[Base, means("The service, as people reach it.")] = "http://localhost:8700"
    grafana: Annotated[Base, means("Grafana, as people reach it.")] = "http://localhost:3000"
    runbooks: Annotated[Address | None, means("Usually the service's own page.")] = None

    def runbook(self, name: str) -> str:
        """Where the section of an alert stands."""
        return f"{self.runbooks or f'{self.toolfault}/runbooks'}#{name.lower()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Receivers:
    """Who is told. Secrets stay in files that Alertmanager reads."""

    __pydantic_config__: ClassVar = CLOSED

    pager_key_file: Annotated[Name, means("Holds PagerDuty's integration key.")] = (
        "/etc/alertmanager/secrets/pagerduty_routing_key"
    )
    chat_url_file: Annotated[Name, means("Holds Slack's address.")] = (
        "/etc/alertmanager/secrets/slack_url"
    )
    chat_channel: Annotated[Name, means("Of warnings without an owner.")] = "#toolfault"
    ticket_channel: Annotated[Name, means("Of tickets without an owner.")] = "#toolfault-tickets"
    dead_mans_switch: Annotated[Address, means("Raises the alarm when no longer called.")] = (
        "https://dead-mans-switch.example/toolfault"
    )
    owner_channels: Annotated[dict[Name, Name], means("The chat channel of each owner.")] = field(
        default_factory=dict
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """Where Prometheus and Alertmanager find the rest; as shipped, in `docker-compose.yml`."""

    __pydantic_config__: ClassVar = CLOSED

    replicas: Annotated[
        tuple[Base, ...], Field(min_length=1), means("Of the service; all http or all https.")
    ] = ("http://toolfault:8700",)
    collectors: Annotated[tuple[Base, ...], means("The metrics of each Collector.")] = (
        "http://otel-collector:8888",
    )
    alertmanagers: Annotated[tuple[Base, ...], means("Whom Prometheus tells.")] = (
        "http://alertmanager:9093",
    )
    every: Annotated[Window, means("How often is scraped: twice or more in windows.near.")] = "15s"
    token_file: Annotated[
        str, means("Holds the token that replicas are shown; empty where they ask for none.")
    ] = "/run/tokens/scrape"  # noqa: S105 - a path


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """How notifications are put together."""

    __pydantic_config__: ClassVar = CLOSED

    #: Lets the alert for many tools come first and mute the others.
    group: Annotated[Duration, means("Until the first message of a group.")] = "30s"
    group_again: Annotated[Duration, means("Until what is new in a group is sent.")] = "5m"
    repeat: Annotated[Duration, means("Until what still fires is sent again.")] = "12h"
    repeat_critical: Annotated[Duration, means("The same of critical alerts.")] = "1h"
    cards: Annotated[Duration, means("Until a card shows that its incident ended.")] = "1m"
    alive: Annotated[Duration, means("How often the dead man's switch is called.")] = "5m"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alerts:
    """Every alert. `internal_error_spike` is `ToolfaultInternalErrorSpike`, and so on."""

    __pydantic_config__: ClassVar = CLOSED

    internal_error_spike: Spike = Spike(
        severity="critical", wait="1m", keep="10m", nats=14.0, factor=3.0, floor=0.002
    )
    many_tools_failing: Several = Several(severity="critical", wait="1m", keep="10m")
    credential_rejected: Rejected = Rejected(severity="critical", keep="15m")
    budget_exhaustion_rising: Above = Above(
        severity="warning", keep="10m", nats=14.0, factor=3.0, floor=0.001
    )
    internal_errors_elevated: Sustained = Sustained(
        severity="warning", keep="10m", nats=12.0, factor=2.0, floor=0.001
    )
    permission_denied: Sustained = Sustained(
        severity="warning", keep="15m", nats=12.0, factor=2.0, floor=0.01
    )
    policy_refusals_elevated: Sustained = Sustained(
        severity="ticket", keep="1h", nats=12.0, factor=2.0, floor=0.01
    )
    invalid_arguments_elevated: Sustained = Sustained(
        severity="ticket", keep="1h", nats=12.0, factor=2.0, floor=0.01
    )
    model_error_spike: Above = Above(
        severity="critical", wait="1m", keep="10m", nats=14.0, factor=3.0, floor=0.01
    )
    model_retries_exhausted: Above = Above(
        severity="warning", wait="2m", keep="10m", nats=14.0, factor=3.0, floor=0.001
    )
    unguarded_error: Count = Count(severity="warning", keep="30m")
    backstop_reached: Count = Count(severity="warning", keep="30m")
    unregistered_tool_called: Count = Count(severity="warning", keep="30m")
    run_limit_exceeded: Count = Count(severity="warning", keep="30m")
    new_internal_error_group: Count = Count(severity="ticket", keep="30m")
    dead_letters_waiting: Count = Count(severity="warning", wait="15m")
    target_down: Alert = Alert(severity="warning", wait="5m")
    telemetry_absent: Alert = Alert(severity="critical", wait="5m")
    telemetry_silent: Count = Count(severity="warning", wait="10m", more_than=20.0)
    telemetry_dropped: Count = Count(severity="warning", wait="5m", keep="10m")
    late_telemetry: Count = Count(severity="warning", wait="10m", keep="10m", more_than=10.0)
    ingestion_refusing: Count = Count(severity="warning", wait="5m", keep="10m")
    partitions_not_ahead: AtLeast = AtLeast(severity="critical", wait="15m", least=3.0)
    scrubber_faults: Count = Count(severity="warning", keep="30m")
    rules_failing: Count = Count(severity="warning", wait="10m")
    watchdog: Alert = Alert(severity="none")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """Everything that the rules, routes and runbooks are written from."""

    __pydantic_config__: ClassVar = CLOSED

    windows: Windows = Windows()  # noqa: RUF009 - frozen
    baseline: Baseline = Baseline()  # noqa: RUF009 - frozen
    jobs: Jobs = Jobs()
    links: Links = Links()
    waits: Waits = Waits()
    receivers: Receivers = field(default_factory=Receivers)
    stack: Stack = Stack()
    alerts: Alerts = Alerts()
    places: Annotated[
        tuple[Place, ...], means("Where alerts differ; the most specific place wins.")
    ] = ()


def shown(length: float) -> str:
    """Seconds as a Prometheus duration."""
    minutes, rest = divmod(round(1000 * length), 60_000)
    whole, thousandths = divmod(rest, 1000)
    parts = ((minutes, "m"), (whole, "s"), (thousandths, "ms"))
    return "".join(f"{amount}{unit}" for amount, unit in parts if amount)


def alert_name(key: str) -> str:
    """The name people see, of an alert's field."""
    return "Toolfault" + "".join(word.title() for word in key.split("_"))
