"""Typed tool errors, one envelope for the model and a reference for the user.

import toolfault

toolfault.configure()

@toolfault.guard("book_meeting")
def book_meeting(date: str, slot: str) -> dict: ...
"""

from toolfault.envelope import Envelope, instructions
from toolfault.error_map import (
    ToolErrorMap,
    by_status,
    permanent,
    refusal,
    timed_out,
    transient,
)
from toolfault.errors import (
    ToolArgumentValidationError,
    ToolError,
    ToolFailure,
    ToolNotFoundError,
    ToolNotPermittedError,
    ToolRefusal,
    ToolResultError,
    ToolTimedOutError,
)
from toolfault.guard import guard
from toolfault.hooks import instrument, uninstrument
from toolfault.model_calls import retry_model_call
from toolfault.run import Run, RunLimitExceededError, ToolFailurePolicy, current_run, run
from toolfault.taxonomy import Action, Code, Effect, Outcome
from toolfault.telemetry.setup import configure, shutdown
from toolfault.turned_away import never_ran
from toolfault.what_ran import fallback

__all__ = [
    "Action",
    "Code",
    "Effect",
    "Envelope",
    "Outcome",
    "Run",
    "RunLimitExceededError",
    "ToolArgumentValidationError",
    "ToolError",
    "ToolErrorMap",
    "ToolFailure",
    "ToolFailurePolicy",
    "ToolNotFoundError",
    "ToolNotPermittedError",
    "ToolRefusal",
    "ToolResultError",
    "ToolTimedOutError",
    "by_status",
    "configure",
    "current_run",
    "fallback",
    "guard",
    "instructions",
    "instrument",
    "never_ran",
    "permanent",
    "refusal",
    "retry_model_call",
    "run",
    "shutdown",
    "timed_out",
    "transient",
    "uninstrument",
]
