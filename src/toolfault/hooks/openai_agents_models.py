"""The model calls of the OpenAI Agents SDK: one a turn, begun by a hook and ended by spans.

Hooks run in tasks of their own, so that nothing they set reaches the model: the call is prepared
where the span of its turn begins. With the SDK's tracing off, nothing tells of failures, and no
model call is counted.
"""

from __future__ import annotations

import sys
from typing import Any

from agents import Model, UserError
from agents.exceptions import (
    InputGuardrailTripwireTriggered,
    MaxTurnsExceeded,
    OutputGuardrailTripwireTriggered,
)
from agents.models import get_default_model
from agents.tracing import GenerationSpanData, ResponseSpanData, TurnSpanData, get_current_span

from toolfault.hooks.base import never_raises
from toolfault.hooks.models import ModelCalls
from toolfault.hooks.openai_agents_told import trace_id
from toolfault.run import Run

MODELS = ModelCalls()
_NOT_THE_MODELS = (
    InputGuardrailTripwireTriggered, OutputGuardrailTripwireTriggered, MaxTurnsExceeded, UserError,
)  # fmt: skip


def asks(agent: Any, run: Run | None) -> None:
    """The model of an agent is asked; every hook says so, the first one counts.

    Raises:
        RunLimitExceededError: the application's run may make no more model calls.
    """
    key = _turn()
    if key is not None and not MODELS.under_way(key):
        MODELS.asks(key, _name(agent), run)


@never_raises
def answered(response: Any) -> None:
    """The model has answered."""
    if (key := _turn()) is not None:
        if not (MODELS.attempts(key) or 0) > 1:  # no spans told of the attempts before it
            MODELS.repeated(key, response.usage.requests - 1)
        MODELS.answered(key)


def span_started(span: Any) -> None:
    """A turn begins, or an attempt of its model."""
    if isinstance(span.span_data, TurnSpanData):
        MODELS.expects((span.span_id,))
    elif isinstance(span.span_data, GenerationSpanData | ResponseSpanData):
        MODELS.again((span.parent_id,))


def span_ended(span: Any) -> None:
    """An attempt of a model is over, or its turn."""
    error = sys.exception()
    if isinstance(span.span_data, GenerationSpanData | ResponseSpanData):
        MODELS.named((span.parent_id,), getattr(span.span_data, "model", None))
        if isinstance(error, Exception):
            MODELS.failed((span.parent_id,), error)
    elif isinstance(span.span_data, TurnSpanData):
        key = (span.span_id,)
        if isinstance(error, Exception) and not isinstance(error, _NOT_THE_MODELS):
            MODELS.failed(key, error)
        MODELS.over(key)


def _turn() -> tuple[str] | None:
    span = get_current_span()
    return None if span is None or trace_id() is None else (span.span_id,)


@never_raises
def _name(agent: Any) -> object:
    """The agent's model; that of a run's configuration is told by the span of its attempt."""
    if isinstance(agent.model, Model):
        return getattr(agent.model, "model", None) or type(agent.model).__name__
    return agent.model or get_default_model()
