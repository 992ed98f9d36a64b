"""What the values of settings may be; where alerts and places share one, what it means, too."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, ConfigDict, Field

CLOSED = ConfigDict(extra="forbid")


def means(text: str) -> Any:
    """The description of a setting in the JSON schema."""
    return Field(description=text)


def _has_host(address: str) -> str:
    if not urlsplit(address).netloc:
        raise ValueError(address)
    return address


def _shown(address: str) -> str:
    """It stands in alerts and on open pages, and a path is added: without password, without a slash."""
    if "@" in urlsplit(address).netloc:
        raise ValueError(address)
    return address.rstrip("/")


Duration = Annotated[str, Field(pattern=r"^(?:[0-9]{1,4}(?:ms|[smhdw]))+$")]
#: A duration that is not nothing.
Window = Annotated[str, Field(pattern=r"^(?:[1-9][0-9]{0,3}(?:ms|[smhdw]))+$")]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Positive = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(gt=0, le=1)]
Whole = Annotated[int, Field(ge=1)]
Times = Annotated[float, Field(ge=1)]  # below, less than the usual would be far above it
Address = Annotated[str, Field(pattern=r"^https?://[^\s]+$"), AfterValidator(_has_host)]
Base = Annotated[Address, AfterValidator(_shown)]

Enabled = Annotated[bool, means("Whether the alert is there.")]
Severity = Annotated[
    Literal["critical", "warning", "ticket", "none"],
    means(
        "critical wakes somebody, warning is read the same hour, ticket the same week, "
        "none proves life."
    ),
]
Owner = Annotated[str, means("Who answers for it; one of receivers.owner_channels.")]
Nats = Annotated[Positive, means("Surprise that is needed: log-likelihood ratio of the count.")]
Factor = Annotated[Times, means("How many times the usual is needed.")]
Floor = Annotated[Share, means("Share of the calls that is needed, 0.01 is 1 %.")]
Apart = Annotated[
    Whole,
    means(
        "Needed in each of the last two windows.stretch, or twice as many in each of the last two "
        "windows.short."
    ),
]
Burst = Annotated[Whole, means("So many at once are enough, however little they are spread.")]
Denied = Annotated[Share, means("Share of the calls that must be denied.")]
Calls = Annotated[Whole, means("Denied calls that are needed in windows.medium.")]
Buckets = Annotated[Whole, means("In so many separate stretches of time it must have happened.")]
Tools = Annotated[int, Field(ge=2), means("Tools of one service that must fail at the same time.")]
MoreThan = Annotated[float, Field(ge=0), means("It fires above this.")]
Least = Annotated[Positive, means("It fires below this.")]
