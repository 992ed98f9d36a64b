"""What people and Alertmanager send."""

from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from toolfault.web.listing import Status, Text
from toolfault.web.models import Frozen


class StatusChange(BaseModel):
    """The new status of a group."""

    model_config = ConfigDict(extra="forbid")

    status: Status


class Alert(BaseModel):
    """An alert as Alertmanager sends it."""

    model_config = ConfigDict(extra="ignore")

    status: Literal["firing", "resolved"]
    labels: dict[str, str]
    annotations: dict[str, str] = {}
    startsAt: AwareDatetime  # noqa: N815 - Alertmanager's spelling
    endsAt: AwareDatetime | None = None  # noqa: N815 - as above
    fingerprint: Text


class Alerts(BaseModel):
    """Alertmanager's webhook body."""

    model_config = ConfigDict(extra="ignore")

    alerts: list[Alert] = Field(max_length=1000)


class Recorded(Frozen):
    """How many alerts were taken."""

    recorded: int
