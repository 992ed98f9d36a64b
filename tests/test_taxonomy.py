"""The closed sets and the decision tables, worked out by hand from the contract."""

import pytest

from toolfault import taxonomy
from toolfault.taxonomy import Action, Code, Effect, Outcome, action_for, effect_of, fold_effect


def test_the_closed_sets_are_public_api():
    assert [code.value for code in Code] == [
        "INVALID_ARGUMENT", "NOT_FOUND", "CONFLICT", "RATE_LIMITED", "UNAVAILABLE",
        "PERMISSION_DENIED", "INTERNAL",
    ]  # fmt: skip
    assert [outcome.value for outcome in Outcome] == [
        "ok", "failed", "timed_out", "declined", "refused", "invalid", "not_found", "cancelled",
    ]  # fmt: skip
    assert [effect.value for effect in Effect] == ["none", "applied", "unknown"]
    assert [action.value for action in Action] == [
        "none", "fix_arguments", "ask_user", "choose_alternative", "retry_later",
        "check_before_retry", "stop_and_tell_user",
    ]  # fmt: skip


def test_twenty_pairs_of_outcome_and_code_can_occur():
    assert len(taxonomy.PAIRS) == len(set(taxonomy.PAIRS)) == 2 + 4 + 2 * 7
    assert ("ok", "OK") in taxonomy.PAIRS
    assert ("cancelled", "CANCELLED") in taxonomy.PAIRS
    assert ("refused", "PERMISSION_DENIED") in taxonomy.PAIRS
    assert ("failed", "PERMISSION_DENIED") in taxonomy.PAIRS
    assert ("refused", "INTERNAL") not in taxonomy.PAIRS


N, A, U = Effect.NONE, Effect.APPLIED, Effect.UNKNOWN


@pytest.mark.parametrize(
    ("outcome", "code", "nothing_landed", "writing", "reading"),
    [
        ("ok", None, False, A, N),
        ("declined", "CONFLICT", False, N, N),
        ("refused", "PERMISSION_DENIED", False, N, N),
        ("invalid", "INVALID_ARGUMENT", False, N, N),
        ("not_found", "NOT_FOUND", False, N, N),
        ("cancelled", None, False, U, N),
        ("timed_out", "UNAVAILABLE", False, U, N),
        ("failed", "UNAVAILABLE", False, U, N),
        ("failed", "UNAVAILABLE", True, N, N),
        ("failed", "INTERNAL", False, U, N),
        ("failed", "INVALID_ARGUMENT", False, N, N),
        ("failed", "NOT_FOUND", False, N, N),
        ("failed", "CONFLICT", False, N, N),
        ("failed", "RATE_LIMITED", False, N, N),
        ("failed", "PERMISSION_DENIED", False, N, N),
    ],
)
def test_the_effect_of_an_attempt(outcome, code, nothing_landed, writing, reading):
    for writes, expected in ((True, writing), (False, reading)):
        given = Outcome(outcome), code and Code(code)
        assert effect_of(*given, writes=writes, nothing_landed=nothing_landed) is expected


@pytest.mark.parametrize(
    ("earlier", "outcome", "latest", "idempotent", "expected"),
    [
        (N, "ok", A, False, (A, False)),
        (N, "failed", U, False, (U, False)),
        (N, "declined", N, False, (N, False)),
        (U, "failed", N, False, (U, False)),
        (U, "declined", N, False, (U, False)),
        (U, "failed", U, True, (U, False)),
        (U, "ok", A, False, (A, True)),
        (U, "ok", A, True, (A, False)),
        (A, "failed", N, False, (A, False)),
        (A, "ok", A, False, (A, True)),
        (U, "failed", A, False, (A, False)),
    ],
)
def test_effects_fold_over_attempts(earlier, outcome, latest, idempotent, expected):
    assert fold_effect(earlier, Outcome(outcome), latest, idempotent=idempotent) == expected


STOP, CHECK, LATER = "stop_and_tell_user", "check_before_retry", "retry_later"
PLAIN, TRANSIENT, IDEMPOTENT = {}, {"transient": True}, {"idempotent": True}


@pytest.mark.parametrize(
    ("outcome", "code", "effect", "flags", "action"),
    [
        # line 1
        ("ok", None, A, PLAIN, "none"),
        ("cancelled", None, U, PLAIN, "none"),
        ("declined", "CONFLICT", N, PLAIN, "none"),
        ("declined", "CONFLICT", U, PLAIN, CHECK),
        ("declined", "CONFLICT", U, IDEMPOTENT, "none"),
        # line 2
        ("refused", "PERMISSION_DENIED", N, PLAIN, STOP),
        ("not_found", "NOT_FOUND", N, PLAIN, STOP),
        ("failed", "PERMISSION_DENIED", N, PLAIN, STOP),
        ("failed", "INTERNAL", U, PLAIN, STOP),
        ("failed", "INTERNAL", N, PLAIN, STOP),
        ("failed", "UNAVAILABLE", A, PLAIN, STOP),
        ("failed", "UNAVAILABLE", N, {"transient": True, "out_of_time": True}, STOP),
        # line 3
        ("timed_out", "UNAVAILABLE", U, PLAIN, CHECK),
        ("failed", "UNAVAILABLE", U, PLAIN, CHECK),
        ("failed", "CONFLICT", U, PLAIN, CHECK),
        # line 4
        ("invalid", "INVALID_ARGUMENT", N, PLAIN, "fix_arguments"),
        ("failed", "INVALID_ARGUMENT", N, PLAIN, "fix_arguments"),
        # line 5
        ("failed", "NOT_FOUND", N, PLAIN, "ask_user"),
        # line 6
        ("failed", "CONFLICT", N, PLAIN, "choose_alternative"),
        # line 7
        ("failed", "UNAVAILABLE", N, TRANSIENT, LATER),
        ("failed", "RATE_LIMITED", N, TRANSIENT, LATER),
        ("timed_out", "UNAVAILABLE", N, PLAIN, LATER),
        ("timed_out", "UNAVAILABLE", U, IDEMPOTENT, LATER),
        ("failed", "UNAVAILABLE", U, IDEMPOTENT, LATER),
        # line 8
        ("failed", "UNAVAILABLE", N, PLAIN, STOP),
        ("failed", "RATE_LIMITED", N, PLAIN, STOP),
    ],
)
def test_the_first_matching_line_of_the_action_table_decides(outcome, code, effect, flags, action):
    assert action_for(Outcome(outcome), code and Code(code), effect, **flags) == action


@pytest.mark.parametrize(
    ("outcome", "code", "effect", "flags", "action"),
    [
        ("timed_out", "UNAVAILABLE", U, PLAIN, STOP),
        ("failed", "UNAVAILABLE", N, TRANSIENT, STOP),
        ("invalid", "INVALID_ARGUMENT", N, PLAIN, "fix_arguments"),
        ("failed", "NOT_FOUND", N, PLAIN, "ask_user"),
        ("failed", "CONFLICT", N, PLAIN, "choose_alternative"),
        ("declined", "CONFLICT", U, PLAIN, CHECK),
    ],
)
def test_a_spent_budget_changes_lines_three_and_seven_only(outcome, code, effect, flags, action):
    given = Outcome(outcome), Code(code), effect
    assert action_for(*given, **flags, budget_spent=True) == action


@pytest.mark.parametrize(
    ("action", "retryable"),
    [
        ("stop_and_tell_user", False),
        ("check_before_retry", False),
        ("fix_arguments", True),
        ("ask_user", False),
        ("choose_alternative", True),
        ("retry_later", True),
        ("none", False),
    ],
)
def test_retryable_follows_from_the_action(action, retryable):
    assert taxonomy.is_retryable(Action(action)) is retryable
