"""What the alerts are: every threshold, window, severity, owner and link, with the shipped values.

The numbers were chosen by measurement; `docs/alerting.md` shows what they find and what they miss.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Annotated, ClassVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from toolfault.alerts.overrides import (
    CLOSED,
    Duration,
    Many,
    Name,
    Place,
    Positive,
    Severity,
    Share,
    Times,
    Whole,
    Window,
)


def _has_host(address: str) -> str:
    if not urlsplit(address).netloc:
        raise ValueError(address)
    return address


Address = Annotated[str, Field(pattern=r"^https?://[^\s]+$"), AfterValidator(_has_host)]
#: A path is added to it: with a slash of its own there would be two.
Base = Annotated[Address, AfterValidator(lambda address: address.rstrip("/"))]
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
    wait: Duration = "0s"  # the condition holds this long before it fires
    keep: Duration = "0s"  # it keeps firing this long after the condition ended
    owner: str = ""
    enabled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Above(Alert):
    """Far above what the subject's own history predicts, and enough to matter."""

    nats: Positive  # surprise: Poisson log-likelihood ratio of the count
    factor: Times  # times the usual
    floor: Share  # of the calls


@dataclass(frozen=True, slots=True, kw_only=True)
class Spike(Above):
    """Above the usual, and no single conversation's doing: it goes on, or is more than two could do."""

    apart: Whole = 3  # in each of two `Windows.stretch`, or twice that in each of two short windows
    burst: Whole = 30  # or in the short window: 2 x 12 calls of a run, rounded up


@dataclass(frozen=True, slots=True, kw_only=True)
class Sustained(Above):
    """Above the usual in several separate stretches: not one user's burst."""

    buckets: Whole = 3  # of those in `Windows.sustained`


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected(Alert):
    """Most calls denied: spread over time, or more than two runs could make."""

    share: Share = 0.5  # of the calls
    calls: Whole = 5  # in the medium window ...
    buckets: Whole = 3  # ... spread over this many stretches of five minutes
    burst: Whole = 30  # or in one of them: 2 x 12 calls of a run, rounded up


@dataclass(frozen=True, slots=True, kw_only=True)
class Several(Alert):
    """Many tools of a service at once."""

    tools: Many = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Count(Alert):
    """Things that should not be there, counted."""

    more_than: Annotated[float, Field(ge=0)] = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AtLeast(Alert):
    """Something there should be enough of."""

    least: Positive


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """How far the rules look back."""

    __pydantic_config__: ClassVar = CLOSED

    short: Window = "5m"
    stretch: Window = "2m"  # longer than one user's retries take
    medium: Window = "15m"
    long: Window = "1h"
    slow: Window = "6h"  # of what is only a ticket
    sustained: Window = "30m"  # of the long window: in whose stretches something keeps happening
    near: Window = "2m"  # a scrape no older than this shows how things are
    evaluation: Window = "1m"  # of the short window; of longer ones whenever a stretch ends


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """How the usual ratio of a signal is learned."""

    __pydantic_config__: ClassVar = CLOSED

    days: Annotated[int, Field(ge=1, le=14)] = 7  # of whose ratios the median is taken
    learned: Annotated[str, Field(pattern=r"^[1-9][0-9]{0,3}[smh]$")] = (
        "30m"  # anew, until then not usual; the stretch that the slow window is a sum of, too
    )
    prior_ratio: Share = 0.1  # assumed of what has no history ...
    prior_calls: Positive = 20.0  # ... and worth this many calls
    season_calls: Positive = 50.0  # the day's ratio is worth this many calls of one hour
    season_factor: Times = 1.5  # an hour so many times above its day is told apart from it ...
    season_days: Whole = 4  # ... and is usual if there were so many: more than half of the days
    cap: Share = 0.1  # chronic breakage never becomes usual
    bridge: Window = (
        "61m"  # what was learned so long before a window is of an hour that reaches into it
    )
    bucket: Window = "5m"  # the stretch that the medium and long windows are sums of


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """Prometheus' names of the scrape jobs, and what differs between replicas."""

    __pydantic_config__: ClassVar = CLOSED

    service: Name = "toolfault"  # /metrics of every replica
    tools: Name = "toolfault-tools"  # /metrics/tools, the same from every replica
    collector: Name = "otel-collector"  # what is between agents and the service, if anything is
    replica_labels: tuple[Name, ...] = ("instance",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Where people are led."""

    __pydantic_config__: ClassVar = CLOSED

    toolfault: Base = "http://localhost:8700"
    grafana: Base = "http://localhost:3000"
    runbooks: Address | None = None  # None: the service's own page

    def runbook(self, name: str) -> str:
        """Where the section of an alert stands."""
        return f"{self.runbooks or f'{self.toolfault}/runbooks'}#{name.lower()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Receivers:
    """Who is told. Secrets stay in files that Alertmanager reads."""

    __pydantic_config__: ClassVar = CLOSED

    pager_key_file: Name = "secrets/pagerduty_routing_key"
    chat_url_file: Name = "secrets/slack_url"
    chat_channel: Name = "#toolfault"
    ticket_channel: Name = "#toolfault-tickets"
    dead_mans_switch: Address = "https://dead-mans-switch.example/toolfault"
    owner_channels: dict[Name, Name] = field(default_factory=dict)  # owner: chat channel


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """Where Prometheus and Alertmanager find the rest; as shipped, in `docker-compose.yml`."""

    __pydantic_config__: ClassVar = CLOSED

    replicas: Annotated[tuple[Base, ...], Field(min_length=1)] = ("http://toolfault:8700",)
    collectors: tuple[Base, ...] = ("http://otel-collector:8888",)
    alertmanagers: tuple[Base, ...] = ("http://alertmanager:9093",)
    every: Window = "15s"  # a scrape
    token_file: str = "/run/tokens/scrape"  # noqa: S105 - shown to replicas; empty: they ask for none


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """How notifications are put together."""

    __pydantic_config__: ClassVar = CLOSED

    group: Duration = "30s"  # lets the alert for many tools come first and mute the others
    group_again: Duration = "5m"
    repeat: Duration = "12h"
    repeat_critical: Duration = "1h"
    cards: Duration = "1m"  # until a card shows that its incident ended
    alive: Duration = "5m"  # of the dead man's switch


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

    windows: Windows = Windows()
    baseline: Baseline = Baseline()
    jobs: Jobs = Jobs()
    links: Links = Links()
    waits: Waits = Waits()
    receivers: Receivers = field(default_factory=Receivers)
    stack: Stack = Stack()
    alerts: Alerts = Alerts()
    places: tuple[Place, ...] = ()


def shown(length: float) -> str:
    """Seconds as a Prometheus duration."""
    minutes, rest = divmod(round(1000 * length), 60_000)
    whole, thousandths = divmod(rest, 1000)
    parts = ((minutes, "m"), (whole, "s"), (thousandths, "ms"))
    return "".join(f"{amount}{unit}" for amount, unit in parts if amount)


def alert_name(key: str) -> str:
    """The name people see, of an alert's field."""
    return "Toolfault" + "".join(word.title() for word in key.split("_"))
