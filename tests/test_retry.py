"""When the loop repeats a call by itself: the decision table and the bounds of its waits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfault import (
    ToolArgumentValidationError,
    ToolFailure,
    ToolNotFoundError,
    ToolNotPermittedError,
    ToolRefusal,
    ToolTimedOutError,
    retry,
)

WRITE, IDEMPOTENT, READ = (True, False), (True, True), (False, False)
TRANSIENT = ToolFailure("t", "down", transient=True)
GATEWAY = ToolFailure("t", "bad_gateway", code="UNAVAILABLE")
UNMAPPED = ToolFailure("t", "unmapped_failure", code="INTERNAL")


@pytest.mark.parametrize(
    ("error", "untyped", "write", "idempotent", "read"),
    [
        (TRANSIENT, False, True, True, True),
        (ToolFailure("t", "busy", transient=True, code="RATE_LIMITED"), False, True, True, True),
        (ToolTimedOutError("t"), False, False, True, True),
        (GATEWAY, False, False, True, True),
        (UNMAPPED, True, False, True, True),
        (ToolFailure("t", "bug", code="INTERNAL"), False, False, False, False),
        (ToolFailure("t", "gone", code="NOT_FOUND"), False, False, False, False),
        (ToolFailure("t", "clash", code="CONFLICT"), False, False, False, False),
        (ToolFailure("t", "no", code="PERMISSION_DENIED"), False, False, False, False),
        (ToolRefusal("t", "taken", "Taken."), False, False, False, False),
        (ToolNotPermittedError("t"), False, False, False, False),
        (ToolArgumentValidationError("t"), False, False, False, False),
        (ToolNotFoundError("t"), False, False, False, False),
    ],
)
def test_what_is_repeated_for_which_tool(error, untyped, write, idempotent, read):
    def decide(kind):
        return retry.may_repeat(error, untyped=untyped, writes=kind[0], idempotent=kind[1])

    assert (decide(WRITE), decide(IDEMPOTENT), decide(READ)) == (write, idempotent, read)


@given(st.integers(1, 10_000))
def test_a_wait_is_between_half_a_step_and_a_step_and_never_over_30_seconds(attempt):
    step = min(0.5 * 2 ** min(attempt - 1, 16), 30)
    assert step / 2 <= retry.backoff(attempt) <= step


@given(st.integers(1, 20), st.floats(0, 1e6))
def test_a_wait_is_never_shorter_than_retry_after(attempt, retry_after):
    assert retry.backoff(attempt, retry_after) >= retry_after


def test_two_callers_do_not_wait_alike():
    assert len({retry.backoff(5) for _ in range(20)}) > 1
