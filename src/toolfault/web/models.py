"""The typed answers: one set for the API, the pages and the card in the terminal."""

from datetime import date, datetime
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class State(StrEnum):
    """What a look-up ended in."""

    FOUND = "found"
    EXPIRED = "expired"
    MISTYPED = "mistyped"
    PENDING = "pending"
    NOT_RECEIVED = "not_received"
    UNKNOWN = "unknown"


class Frozen(BaseModel):
    """A value that is made once and only read after."""

    model_config = ConfigDict(frozen=True)


class Words(Frozen):
    """The short answer, in words for people; whatever is missing says so and why."""

    title: str
    summary: str
    effect: str
    effect_how: str
    incident: str
    incident_detail: str
    owner: str
    owner_detail: str
    tell_user: str
    tell_user_from: str = Field(description="Where the words for the user come from.")


class Attempt(Frozen):
    """One try of the tool's own code."""

    number: int
    offset: float = Field(
        description="Seconds from the start of the call to the start of this attempt."
    )
    duration: float
    waited: float
    code: str | None
    reason: str | None
    effect: str | None

    @property
    def end(self) -> float:
        """Seconds from the start of the call to the end of this attempt."""
        return self.offset + self.duration


class Step(Frozen):
    """Another call of the same conversation, or this one."""

    at: datetime
    service: str
    tool: str
    outcome: str
    code: str | None
    reason: str | None
    action: str
    effect: str
    reference: str | None
    this_call: bool


class ExceptionDetail(Frozen):
    """What the exception said, scrubbed. Engineers only."""

    type: str | None
    message: str | None
    stacktrace: str | None


class LogLine(Frozen):
    """A log record stamped with the reference. Engineers only."""

    at: datetime
    level: str
    logger: str | None
    body: str


class GroupSummary(Frozen):
    """The calls that failed in the same way."""

    fingerprint: str
    title: str
    status: str
    calls_last_day: int = Field(description="The sum of the trend.")
    calls_last_hour: int
    first_seen: datetime
    last_seen: datetime
    versions: tuple[str, ...]
    trend: tuple[int, ...] = Field(description="Calls in each of the last 24 hours, oldest first.")


class IncidentSummary(Frozen):
    """An alert that fired over calls like this one."""

    name: str
    summary: str | None
    runbook: str | None
    since: datetime
    until: datetime | None


class Match(Frozen):
    """One call behind a reference."""

    reference: str
    service: str | None
    environment: str | None
    tool: str | None
    outcome: str | None = Field(description="None: only a part of the call is here.")
    code: str | None
    reason: str | None
    action: str | None
    effect: str | None
    attempts: int | None
    possibly_twice: bool | None = None
    retry_after: float | None = None
    field: str | None = None
    started_at: datetime | None
    received_at: datetime
    duration: float | None = None
    trace_id: str
    span_id: str
    run_id: str | None = None
    conversation_id: str | None = None
    tool_call_id: str | None = None
    agent: str | None = None
    model: str | None = None
    version: str | None = None
    exception_type: str | None = None
    frame: str | None = None
    budget_failures: int | None = None
    budget_limit: int | None = None
    writes: bool | None = None
    idempotent: bool | None = None
    runbook: str | None = None
    words: Words
    envelope: dict[str, Any] | None = Field(
        default=None, description="What the model was told, put together from the record."
    )
    attempt_list: tuple[Attempt, ...] = ()
    conversation: tuple[Step, ...] = ()
    exceptions: tuple[ExceptionDetail, ...] = ()
    log_lines: tuple[LogLine, ...] = ()
    detail_withheld: bool = Field(
        default=False, description="Exception detail and logs need the engineer role."
    )
    group: GroupSummary | None = None
    incident: IncidentSummary | None = None
    trace_url: str | None = None
    log_url: str | None = None


class Suggestion(Frozen):
    """A stored reference that differs little from what was typed."""

    reference: str
    tool: str | None
    outcome: str | None
    at: datetime
    difference: str


class Answer(Frozen):
    """What a look-up says. Never a dead end: there is always something to do next."""

    reference: str
    state: State
    title: str
    explanation: str
    next_step: str
    tell_user: str
    issued_on: date | None = None
    look_again_at: datetime | None = None
    dropped: int | None = Field(
        default=None, description="Records that services said they dropped around that day."
    )
    suggestions: tuple[Suggestion, ...] = ()
    matches: tuple[Match, ...] = ()
    others: tuple[str, ...] = Field(
        default=(), description="Other references in the same text; each is asked for by itself."
    )

    @property
    def is_here(self) -> bool:
        """Whether there is something to show: the answer is 200 and not 404."""
        return self.state in (State.FOUND, State.EXPIRED)
