"""What a call is named, what an attempt did, and when the next one may begin."""

from __future__ import annotations

from toolfault import conventions as c
from toolfault import retry, taxonomy
from toolfault.conventions import MAX_NAME
from toolfault.errors import ToolError, ToolResultError
from toolfault.redact import cap
from toolfault.run import Run
from toolfault.taxonomy import Code, Effect, Outcome
from toolfault.telemetry import declared
from toolfault.telemetry.declared import Tool
from toolfault.telemetry.record import Attributes


def tool_named(name: str) -> Tool:
    """What is declared of a tool; a name nobody declared may be made of whatever a model has read."""
    return declared.known(name) or Tool(name=cap(name, MAX_NAME))


def identity(tool: Tool, call_id: str | None, run: Run | None) -> Attributes:
    """The `gen_ai.*` attributes that name a call."""
    told: Attributes = {
        c.OPERATION_NAME: c.EXECUTE_TOOL,
        c.TOOL_NAME: tool.name,
        c.TOOL_TYPE: tool.type,
    }
    if call_id is not None:
        told[c.TOOL_CALL_ID] = call_id
    if run is not None:
        if run.agent is not None:
            told[c.AGENT_NAME] = run.agent
        if run.conversation_id is not None:
            told[c.CONVERSATION_ID] = run.conversation_id
    return told


def is_sound(error: object) -> bool:
    """Whether it is a typed error whose fields are what they should be.

    A subclass may set them itself, as attributes of its class, where nothing checks them.
    """
    if not isinstance(error, ToolError):
        return False
    texts = error.message, error.field, error.evidence, error.user_message
    return (
        isinstance(error.outcome, Outcome)
        and error.outcome not in (Outcome.OK, Outcome.CANCELLED)
        and isinstance(error.code, Code)
        and isinstance(error.transient, bool)
        and isinstance(error.reason, str)
        and isinstance(error.effect, _EFFECT)
        and isinstance(error.retry_after, _SECONDS)
        and all(isinstance(text, _TEXT) for text in texts)
    )


# Made once: to join types with `|` takes longer than to ask.
_EFFECT, _SECONDS, _TEXT = Effect | None, int | float | None, str | None


def effect_of(error: ToolError, tool: Tool) -> Effect:
    """Whether the attempt that ended with an error landed; the author knows best."""
    if error.effect is not None:
        return error.effect
    if isinstance(error, ToolResultError):
        return Effect.APPLIED if tool.writes else Effect.NONE
    return taxonomy.effect_of(
        error.outcome, error.code, writes=tool.writes, nothing_landed=error.transient
    )


def wait_for_next(error: ToolError, made: int, tool: Tool, run: Run | None) -> float | None:
    """Seconds until the next attempt; None where there must not be one.

    Args:
        error: what the last one ended with.
        made: attempts so far.
        tool: the tool.
        run: the run, one of whose retries this uses.
    """
    untyped = error.reason == taxonomy.UNMAPPED_FAILURE
    if not retry.may_repeat(error, untyped=untyped, writes=tool.writes, idempotent=tool.idempotent):
        return None
    wait = retry.backoff(made, error.retry_after)
    if wait > retry.LONGEST_WAIT:
        return None  # the model can go on with something else meanwhile
    if run is not None and (wait >= run.remaining() or not run.use_retry(tool.name)):
        return None
    return wait
