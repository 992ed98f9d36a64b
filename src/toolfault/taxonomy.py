"""The closed sets every tool error is told in, and what follows from each.

Public API: adding a member is a minor version, removing or repurposing one a major version.
The rules here are pure functions of plain values, so that agents and the service decide alike.
"""

from __future__ import annotations

from enum import StrEnum


class Code(StrEnum):
    """What kind of failure it was."""

    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    NOT_FOUND = "NOT_FOUND"
    CONFLICT = "CONFLICT"
    RATE_LIMITED = "RATE_LIMITED"
    UNAVAILABLE = "UNAVAILABLE"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    INTERNAL = "INTERNAL"


class Outcome(StrEnum):
    """Who decided how the call ended."""

    OK = "ok"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    DECLINED = "declined"  # the tool worked and said no: an answer, not a fault
    REFUSED = "refused"  # a permission decision by policy or a person; nothing ran
    INVALID = "invalid"  # the arguments did not match
    NOT_FOUND = "not_found"  # no such tool: a deployment mistake
    CANCELLED = "cancelled"


class Effect(StrEnum):
    """Whether the tool's action landed."""

    NONE = "none"
    APPLIED = "applied"
    UNKNOWN = "unknown"


class Action(StrEnum):
    """What the model is told to do next."""

    NONE = "none"
    FIX_ARGUMENTS = "fix_arguments"
    ASK_USER = "ask_user"
    CHOOSE_ALTERNATIVE = "choose_alternative"
    RETRY_LATER = "retry_later"
    CHECK_BEFORE_RETRY = "check_before_retry"
    STOP_AND_TELL_USER = "stop_and_tell_user"


#: Reasons the library itself gives; every other reason is its tool author's.
UNMAPPED_FAILURE = "unmapped_failure"
TIMED_OUT = "timed_out"
NOT_PERMITTED = "not_permitted"
REJECTED = "rejected"  # by a person who was asked
INVALID_ARGUMENTS = "invalid_arguments"
UNKNOWN_TOOL = "unknown_tool"
INVALID_RESULT = "invalid_result"
#: Reasons the service gives to errors that tools without the library returned as results.
RETURNED_ERROR = "returned_error"
GENERIC_ERROR = "generic_error"

#: Outcomes that are errors of the call: span status error, `error.type` set.
ERROR_OUTCOMES = frozenset(
    {Outcome.FAILED, Outcome.TIMED_OUT, Outcome.REFUSED, Outcome.INVALID, Outcome.NOT_FOUND}
)
#: Outcomes without a code, a reference and a `tool_error` event.
QUIET_OUTCOMES = frozenset({Outcome.OK, Outcome.CANCELLED})
#: Actions after which the model says the reference to the user.
ACTIONS_WITH_REFERENCE = frozenset(
    {Action.STOP_AND_TELL_USER, Action.CHECK_BEFORE_RETRY, Action.ASK_USER}
)
#: Answers the failure budget counts.
BUDGETED_ACTIONS = frozenset({Action.RETRY_LATER, Action.CHECK_BEFORE_RETRY})
_RETRYABLE_ACTIONS = frozenset(
    {Action.FIX_ARGUMENTS, Action.CHOOSE_ALTERNATIVE, Action.RETRY_LATER}
)

#: The code label of calls that have no code.
CODE_OF_QUIET = {Outcome.OK: "OK", Outcome.CANCELLED: "CANCELLED"}
#: The one code of outcomes that leave no choice.
FIXED_CODE = {
    Outcome.TIMED_OUT: Code.UNAVAILABLE,
    Outcome.REFUSED: Code.PERMISSION_DENIED,
    Outcome.INVALID: Code.INVALID_ARGUMENT,
    Outcome.NOT_FOUND: Code.NOT_FOUND,
}
#: Every (outcome, code label) pair a call can end with.
PAIRS: tuple[tuple[str, str], ...] = (
    *((outcome.value, code) for outcome, code in CODE_OF_QUIET.items()),
    *((outcome.value, code.value) for outcome, code in FIXED_CODE.items()),
    *(
        (outcome.value, code.value)
        for outcome in (Outcome.FAILED, Outcome.DECLINED)
        for code in Code
    ),
)

_LANDED_NOTHING = frozenset(
    {
        Code.INVALID_ARGUMENT,
        Code.NOT_FOUND,
        Code.CONFLICT,
        Code.RATE_LIMITED,
        Code.PERMISSION_DENIED,
    }
)

#: What the model reads when the author wrote nothing, where the outcome says more than the code.
OUTCOME_MESSAGES: dict[Outcome, str] = {
    Outcome.TIMED_OUT: "The tool did not answer in time.",
    Outcome.NOT_FOUND: "There is no such tool.",
}
#: The same for all others. Also the fixed span status descriptions.
MESSAGES: dict[Code, str] = {
    Code.INVALID_ARGUMENT: "An argument is not valid. Correct it and call the tool again.",
    Code.NOT_FOUND: "There is no such record.",
    Code.CONFLICT: "The request conflicts with the present state. Choose an alternative.",
    Code.RATE_LIMITED: "The service is receiving too many requests.",
    Code.UNAVAILABLE: "The service is not available at the moment.",
    Code.PERMISSION_DENIED: "This is not permitted.",
    Code.INTERNAL: "The tool failed unexpectedly.",
}


def effect_of(
    outcome: Outcome, code: Code | None, *, writes: bool, nothing_landed: bool = False
) -> Effect:
    """The effect of one attempt when its author did not state it.

    `nothing_landed` is the author's or the transport map's word (`transient`) for it.
    A result that was rejected after the body ran is `applied`: its caller states that.
    """
    if not writes:
        return Effect.NONE
    if outcome is Outcome.OK:
        return Effect.APPLIED
    if outcome is Outcome.CANCELLED:
        return Effect.UNKNOWN
    if outcome in (Outcome.FAILED, Outcome.TIMED_OUT):
        return Effect.NONE if nothing_landed or code in _LANDED_NOTHING else Effect.UNKNOWN
    return Effect.NONE


def fold_effect(
    earlier: Effect, outcome: Outcome, effect: Effect, *, idempotent: bool
) -> tuple[Effect, bool]:
    """Effect of a call so far and whether it may have landed twice.

    `earlier` is the folded effect of the attempts before, `effect` that of the attempt which
    ended with `outcome`.
    """
    if earlier is Effect.NONE:
        return effect, False
    if outcome is Outcome.OK:
        twice = effect is Effect.APPLIED and not idempotent
        return (effect if effect is not Effect.NONE else earlier), twice
    return (Effect.APPLIED if Effect.APPLIED in (earlier, effect) else Effect.UNKNOWN), False


def action_for(
    outcome: Outcome,
    code: Code | None,
    effect: Effect,
    *,
    transient: bool = False,
    idempotent: bool = False,
    out_of_time: bool = False,
    budget_spent: bool = False,
) -> Action:
    """The advice to the model; the first matching line of the action table decides.

    `out_of_time`: the deadline is spent, or `retry_after` outlasts it.
    """
    if outcome in QUIET_OUTCOMES:
        return Action.NONE
    checkable = effect is Effect.UNKNOWN and not idempotent
    if outcome is Outcome.DECLINED:
        return Action.CHECK_BEFORE_RETRY if checkable else Action.NONE
    if _stops(outcome, code, effect) or out_of_time:
        return Action.STOP_AND_TELL_USER
    if checkable:
        return Action.STOP_AND_TELL_USER if budget_spent else Action.CHECK_BEFORE_RETRY
    if code in _ADVICE:
        return _ADVICE[code]
    passing = transient or idempotent or outcome is Outcome.TIMED_OUT
    return Action.RETRY_LATER if passing and not budget_spent else Action.STOP_AND_TELL_USER


_ADVICE = {
    Code.INVALID_ARGUMENT: Action.FIX_ARGUMENTS,
    Code.NOT_FOUND: Action.ASK_USER,
    Code.CONFLICT: Action.CHOOSE_ALTERNATIVE,
}


def _stops(outcome: Outcome, code: Code | None, effect: Effect) -> bool:
    return (
        outcome in (Outcome.REFUSED, Outcome.NOT_FOUND)
        or code in (Code.PERMISSION_DENIED, Code.INTERNAL)
        or effect is Effect.APPLIED
    )


def is_retryable(action: Action) -> bool:
    """The envelope's `retryable` for an action."""
    return action in _RETRYABLE_ACTIONS
