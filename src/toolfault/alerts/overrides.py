"""What is different about alerts in one place."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

#: critical wakes somebody, warning is read the same hour, ticket the same week, none proves life.
Severity = Literal["critical", "warning", "ticket", "none"]
Duration = Annotated[str, Field(pattern=r"^(?:[0-9]{1,4}(?:ms|[smhdw]))+$")]
#: A duration that is not nothing.
Window = Annotated[str, Field(pattern=r"^(?:[1-9][0-9]{0,3}(?:ms|[smhdw]))+$")]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Positive = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(gt=0, le=1)]
Whole = Annotated[int, Field(ge=1)]
Times = Annotated[float, Field(ge=1)]  # below, less than the usual would be far above it
Many = Annotated[int, Field(ge=2)]

CLOSED = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What is different about an alert in one place; only what is given."""

    __pydantic_config__: ClassVar = CLOSED

    enabled: bool | None = None
    severity: Severity | None = None
    owner: str | None = None
    nats: Positive | None = None
    factor: Times | None = None
    apart: Whole | None = None
    floor: Share | None = None
    share: Share | None = None
    calls: Whole | None = None
    buckets: Whole | None = None
    burst: Whole | None = None
    tools: Many | None = None
    more_than: Annotated[float, Field(ge=0)] | None = None
    least: Positive | None = None

    def given(self) -> dict[str, float | str | bool]:
        """The fields that were given."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A service, an environment, a tool or a combination of them, where alerts differ."""

    __pydantic_config__: ClassVar = CLOSED

    service: Name | None = None
    environment: Name | None = None
    tool: Name | None = None
    alerts: dict[str, Change] = field(default_factory=dict)

    def where(self) -> dict[str, str]:
        """The labels that name the place."""
        named = {
            "service": self.service,
            "environment": self.environment,
            "tool": self.tool,
        }
        return {label: value for label, value in named.items() if value is not None}
