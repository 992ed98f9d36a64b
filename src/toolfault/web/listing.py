"""The typed items of the lists."""

from datetime import UTC, datetime
from typing import Annotated, Generic, Literal, TypeVar
from uuid import UUID

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

from toolfault.store.queries.errors import Error
from toolfault.store.queries.groups import Group
from toolfault.store.queries.references import Tool
from toolfault.taxonomy import Code, Outcome
from toolfault.web import record
from toolfault.web.grouping import group_title
from toolfault.web.models import Frozen, IncidentSummary

Item = TypeVar("Item")
#: Text that the store can hold.
Text = Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00]*$")]


def _in_utc(at: datetime) -> datetime:
    """The moment in UTC; one that lies outside the calendar there is its first or last."""
    try:
        return at.astimezone(UTC)
    except OverflowError:
        edge = datetime.min if at.year == 1 else datetime.max
        return edge.replace(tzinfo=UTC)


#: A time that every reader can show.
Moment = Annotated[AwareDatetime, AfterValidator(_in_utc)]
Status = Literal["open", "resolved", "muted"]
Fingerprint = Annotated[str, StringConstraints(pattern=r"^(?:[0-9a-f]{2}){1,32}$")]


class Page(Frozen, Generic[Item]):
    """One page of a list."""

    items: tuple[Item, ...]
    next: str | None = Field(description="Give it as `cursor` to get the page after this one.")


class ErrorFilters(BaseModel):
    """What the list of errors is narrowed to; several values of one filter are alternatives."""

    model_config = ConfigDict(extra="ignore")

    tool: list[Text] = Field(default=[], max_length=50)
    code: list[Code] = Field(default=[], max_length=10)
    outcome: list[Outcome] = Field(default=[], max_length=10)
    reason: list[Text] = Field(default=[], max_length=50)
    service: list[Text] = Field(default=[], max_length=50)
    environment: list[Text] = Field(default=[], max_length=50)
    conversation: Text | None = None
    trace: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")] | None = None
    group: Fingerprint | None = None
    since: Moment | None = Field(default=None, description="Received at or after.")
    until: Moment | None = Field(default=None, description="Received before.")


class GroupFilters(BaseModel):
    """What the list of groups is narrowed to."""

    model_config = ConfigDict(extra="ignore")

    status: list[Status] = Field(default=[], max_length=3)
    tool: list[Text] = Field(default=[], max_length=50)
    code: list[Code] = Field(default=[], max_length=10)
    service: list[Text] = Field(default=[], max_length=50)


class ErrorItem(Frozen):
    """A call that was not ok."""

    reference: str | None
    at: datetime
    received_at: datetime
    service: str
    environment: str
    tool: str
    outcome: str
    code: str | None
    reason: str | None
    field: str | None = Field(description="The argument that was wrong.")
    action: str
    effect: str
    attempts: int
    duration: float
    agent: str | None
    version: str | None
    conversation_id: str | None
    trace_id: str
    group: str | None
    incident: IncidentSummary | None

    @classmethod
    def of(cls, row: Error, incident: IncidentSummary | None) -> "ErrorItem":
        """An item from its row."""
        same = ("service", "environment", "tool", "outcome", "code", "reason", "action", "effect")
        more = ("field", "attempts", "agent", "version", "conversation_id", "received_at")
        return cls(
            **{name: getattr(row, name) for name in (*same, *more)},
            reference=row.reference_id,
            at=row.told_at or row.started_at,
            duration=row.duration_us / 1e6,
            trace_id=row.trace_id.hex(),
            group=row.fingerprint.hex() if row.fingerprint else None,
            incident=incident,
        )


class ErrorPage(Page[ErrorItem]):
    """One page of the list of errors."""

    searched_to: datetime | None = Field(
        description="How far back the search went, where it stopped before the end."
    )


class GroupItem(Frozen):
    """Calls that failed in the same way."""

    fingerprint: str
    title: str
    status: Status
    status_at: datetime | None
    service: str
    environment: str = Field(description="Of its first call.")
    tool: str
    code: str
    reason: str | None
    exception_type: str | None
    frame: str | None
    first_seen: datetime
    last_seen: datetime
    calls: int
    calls_last_hour: int
    sample_reference: str | None
    versions: tuple[str, ...]
    incident: IncidentSummary | None

    @classmethod
    def of(cls, row: Group, incident: IncidentSummary | None) -> "GroupItem":
        """An item from its row."""
        same = (
            "status_at",
            "service",
            "environment",
            "tool",
            "code",
            "reason",
            "exception_type",
            "frame",
        )
        more = ("first_seen", "last_seen", "calls", "calls_last_hour")
        return cls(
            **{name: getattr(row, name) for name in (*same, *more)},
            fingerprint=row.fingerprint.hex(),
            title=group_title(row),
            status=_status(row.status),
            sample_reference=row.sample_reference_id,
            versions=tuple(row.versions),
            incident=incident,
        )


def _status(status: str) -> Status:
    known: dict[str, Status] = {"resolved": "resolved", "muted": "muted"}
    return known.get(status, "open")


class SampleItem(Frozen):
    """A call of a group, with why it was picked."""

    why: str
    at: datetime
    reference: str
    attempts: int
    effect: str
    version: str | None
    conversation_id: str | None
    trace_id: str


class AffectedItem(Frozen):
    """A conversation that met a group."""

    conversation_id: str
    agent: str | None
    calls: int
    unsure: int = Field(description="Calls that took effect, or may have.")
    possibly_double: bool = Field(description="The action may have been carried out twice.")
    afterwards: str | None = Field(description="What the conversation did next; null: not known.")
    last_seen: datetime


class HourItem(Frozen):
    """Calls in one hour."""

    hour: datetime
    calls: int


class ReleaseItem(Frozen):
    """A version of a service that declared the tool for the first time."""

    service: str
    version: str
    at: datetime


class SharedItem(Frozen):
    """A value that most calls of a group have."""

    name: str
    value: str
    here: float = Field(description="Share of the group's calls that name one.")
    elsewhere: float | None = Field(
        description="Share of the tool's other errors; null where there are none."
    )


class GroupDetail(GroupItem):
    """A group with what it did and to whom."""

    outcome: str | None
    environments: tuple[str, ...]
    conversations: int = Field(description="Over the newest 1,000 calls that are kept, as below.")
    met_again: int = Field(description="Conversations that met it more than once.")
    unsure: int
    nothing: int
    first_version: str | None
    actions: dict[str, int] = Field(description="What the models were told to do, and how often.")
    followed: int = Field(description="Conversations whose next calls were looked at.")
    called_again: int = Field(description="Of those, how many called the same tool again.")
    trend: tuple[HourItem, ...]
    releases: tuple[ReleaseItem, ...] = Field(description="Within the time of the trend.")
    shared: tuple[SharedItem, ...] = Field(
        description="What most of its calls of the last 7 days have in common."
    )
    samples: tuple[SampleItem, ...]
    affected: tuple[AffectedItem, ...]


class ToolItem(Frozen):
    """A tool as it declared itself."""

    service: str
    environment: str
    tool: str
    writes: bool | None
    idempotent: bool | None
    owner: str | None
    owner_contact: str | None
    runbook: str | None
    reasons: dict[str, str] = Field(description="Declared reasons with the words for the user.")
    versions: tuple[str, ...]
    first_seen: datetime
    last_seen: datetime

    @classmethod
    def of(cls, row: Tool) -> "ToolItem":
        """An item from its row."""
        return cls(
            service=row.service,
            environment=row.environment,
            tool=row.tool,
            versions=tuple(row.versions),
            first_seen=row.first_seen,
            last_seen=row.last_seen,
            **record.declaration(row.declared or {}),
        )


class AuditItem(Frozen):
    """A look-up somebody made."""

    at: datetime
    token_id: UUID | None
    token: str | None
    asked: str
    state: str
