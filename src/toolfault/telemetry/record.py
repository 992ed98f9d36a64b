"""The one value that says how a call went; span and run event carry it alike."""

from __future__ import annotations

import json
from typing import NamedTuple

from toolfault import conventions as c
from toolfault.taxonomy import Action, Code, Effect, Outcome

Attributes = dict[str, str | int | float | bool]


def clean(text: str) -> str:
    """`text` without lone surrogates: one of them, from a model's JSON, loses a whole batch."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def cleaned(attributes: Attributes) -> Attributes:
    """Attributes whose text can be sent."""
    for value in attributes.values():
        if isinstance(value, str) and not value.isascii():
            return {k: clean(v) if isinstance(v, str) else v for k, v in attributes.items()}
    return attributes


class Attempt(NamedTuple):
    """One attempt of a call."""

    number: int
    start: int  # unix ns
    end: int  # unix ns
    code: Code | None
    reason: str | None
    effect: Effect
    waited: float  # s before it began

    def attributes(self) -> Attributes:
        """The fields as attributes; those without a value are left out."""
        told: Attributes = {
            c.ATTEMPT_NUMBER: self.number,
            c.ATTEMPT_START: self.start,
            c.ATTEMPT_END: self.end,
            c.ATTEMPT_EFFECT: self.effect.value,
            c.ATTEMPT_WAITED: self.waited,
        }
        if self.code is not None:
            told[c.ATTEMPT_CODE] = self.code.value
        if self.reason is not None:
            told[c.ATTEMPT_REASON] = self.reason
        return told


class ToolCall(NamedTuple):
    """One finished logical call."""

    tool: str
    outcome: Outcome
    start: int  # unix ns
    duration: float  # s
    attempts: tuple[Attempt, ...]
    effect: Effect
    possibly_twice: bool = False
    code: Code | None = None
    reason: str | None = None
    reference_id: str | None = None
    action: Action = Action.NONE
    transient: bool = False
    retryable: bool = False
    retry_after: float | None = None
    field: str | None = None
    evidence: str | None = None
    message: str | None = None
    user_message: str | None = None
    exception_type: str | None = None
    frame: str | None = None
    budget_failures: int | None = None
    budget_limit: int | None = None
    run_id: str | None = None
    conversation_id: str | None = None
    agent: str | None = None
    call_id: str | None = None

    def attributes(self) -> Attributes:
        """The record as `toolfault.*` attributes; what has no value is left out."""
        told: Attributes = {
            c.START: self.start,
            c.DURATION: self.duration,
            c.OUTCOME: self.outcome.value,
            c.ATTEMPTS: len(self.attempts),
            c.EFFECT: self.effect.value,
        }
        if self.possibly_twice:
            told[c.POSSIBLY_TWICE] = True
        if self.run_id is not None:
            told[c.RUN_ID] = self.run_id
        if self.code is not None:
            told |= self._failure_attributes()
        return told

    def _failure_attributes(self) -> Attributes:
        told = {
            c.CODE: self.code and self.code.value,
            c.REASON: self.reason,
            c.REFERENCE_ID: self.reference_id,
            c.ACTION: self.action.value,
            c.TRANSIENT: self.transient,
            c.RETRYABLE: self.retryable,
            c.RETRY_AFTER: self.retry_after,
            c.FIELD: self.field,
            c.EVIDENCE: self.evidence,
            c.MESSAGE: self.message,
            c.USER_MESSAGE: self.user_message,
            c.EXCEPTION_TYPE: self.exception_type,
            c.FRAME: self.frame,
            c.BUDGET_FAILURES: self.budget_failures,
            c.BUDGET_LIMIT: self.budget_limit,
        }
        return {key: value for key, value in told.items() if value is not None}

    def identity(self) -> Attributes:
        """The `gen_ai.*` attributes that name the call."""
        told: Attributes = {c.OPERATION_NAME: c.EXECUTE_TOOL, c.TOOL_NAME: self.tool}
        if self.call_id is not None:
            told[c.TOOL_CALL_ID] = self.call_id
        if self.agent is not None:
            told[c.AGENT_NAME] = self.agent
        if self.conversation_id is not None:
            told[c.CONVERSATION_ID] = self.conversation_id
        return told

    def attempt_list(self) -> str:
        """The attempts as one JSON array, for the run event."""
        return json.dumps([attempt.attributes() for attempt in self.attempts])
