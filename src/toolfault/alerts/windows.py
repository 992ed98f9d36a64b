"""How far back the rules look, and how they learn what is usual."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from toolfault.alerts.values import CLOSED, Positive, Share, Times, Whole, Window, means


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """How far the rules look back."""

    __pydantic_config__: ClassVar = CLOSED

    short: Annotated[Window, means("What pages look at.")] = "5m"
    stretch: Annotated[Window, means("Longer than one user's retries take.")] = "2m"
    medium: Annotated[Window, means("What denied calls, used-up budgets and counts look at.")] = (
        "15m"
    )
    long: Annotated[Window, means("What warnings of ratios look at.")] = "1h"
    slow: Annotated[Window, means("What tickets of ratios look at.")] = "6h"
    sustained: Annotated[Window, means("The end of the long window: is it going on?")] = "30m"
    near: Annotated[Window, means("How old a scrape may be to be believed.")] = "2m"
    evaluation: Annotated[Window, means("How often the short window is looked at.")] = "1m"


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """How the usual ratio of a signal is learned."""

    __pydantic_config__: ClassVar = CLOSED

    days: Annotated[
        int, Field(ge=1, le=14), means("Of the ratios of so many days the median is taken.")
    ] = 7
    learned: Annotated[
        str,
        Field(pattern=r"^[1-9][0-9]{0,3}[smh]$"),
        means("How often it is learned; the slow window is a sum of stretches as long as this."),
    ] = "30m"
    prior_ratio: Annotated[Share, means("Assumed of what has no history.")] = 0.1
    prior_calls: Annotated[Positive, means("As many calls as that assumption is worth.")] = 20.0
    season_calls: Annotated[
        Positive, means("As many calls of one hour as the day's ratio is worth.")
    ] = 50.0
    season_factor: Annotated[Times, means("An hour so many times above its day stands out.")] = 1.5
    season_days: Annotated[
        Whole, means("On so many days an hour must stand out to be usual: more than half of them.")
    ] = 4
    cap: Annotated[Share, means("No more is ever usual: chronic breakage is not.")] = 0.1
    bridge: Annotated[
        Window,
        means("What was learned so long before a window is of an hour that reaches into it."),
    ] = "61m"
    bucket: Annotated[Window, means("What the medium and long windows are sums of.")] = "5m"
