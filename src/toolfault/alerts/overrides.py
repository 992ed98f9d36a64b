"""What is different about alerts in one place."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Annotated, ClassVar

from toolfault.alerts.values import (
    CLOSED,
    Apart,
    Buckets,
    Burst,
    Calls,
    Denied,
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
    means,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What is different about an alert in one place; only what is given."""

    __pydantic_config__: ClassVar = CLOSED

    enabled: Enabled | None = None
    severity: Severity | None = None
    owner: Owner | None = None
    nats: Nats | None = None
    factor: Factor | None = None
    apart: Apart | None = None
    floor: Floor | None = None
    share: Denied | None = None
    calls: Calls | None = None
    buckets: Buckets | None = None
    burst: Burst | None = None
    tools: Tools | None = None
    more_than: MoreThan | None = None
    least: Least | None = None

    def given(self) -> dict[str, float | str | bool]:
        """The fields that were given."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A service, an environment, a tool or a combination of them, where alerts differ."""

    __pydantic_config__: ClassVar = CLOSED

    service: Annotated[Name | None, means("Left out: every service.")] = None
    environment: Annotated[Name | None, means("Left out: every environment.")] = None
    tool: Annotated[Name | None, means("Left out: every tool.")] = None
    alerts: Annotated[dict[str, Change], means("What is different there, by alert.")] = field(
        default_factory=dict
    )

    def where(self) -> dict[str, str]:
        """The labels that name the place."""
        named = {
            "service": self.service,
            "environment": self.environment,
            "tool": self.tool,
        }
        return {label: value for label, value in named.items() if value is not None}
