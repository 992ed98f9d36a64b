"""The error tree: what each kind means and what a careless author is told."""

import copy
import pickle

import pytest

from toolfault import (
    ToolArgumentValidationError,
    ToolError,
    ToolFailure,
    ToolNotFoundError,
    ToolNotPermittedError,
    ToolRefusal,
    ToolResultError,
    ToolTimedOutError,
    guard,
)
from toolfault.testing import assert_envelope

KINDS = [
    (ToolFailure("t", "down", transient=True), "failed", "UNAVAILABLE"),
    (ToolFailure("t", "broken", code="INTERNAL"), "failed", "INTERNAL"),
    (ToolResultError("t"), "failed", "INTERNAL"),
    (ToolTimedOutError("t"), "timed_out", "UNAVAILABLE"),
    (ToolRefusal("t", "taken", "Taken."), "declined", "CONFLICT"),
    (ToolRefusal("t", "no_such_fare", "None.", code="NOT_FOUND"), "declined", "NOT_FOUND"),
    (ToolNotPermittedError("t"), "refused", "PERMISSION_DENIED"),
    (ToolArgumentValidationError("t", field="date"), "invalid", "INVALID_ARGUMENT"),
    (ToolNotFoundError("t"), "not_found", "NOT_FOUND"),
]


@pytest.mark.parametrize(("error", "outcome", "code"), KINDS)
def test_each_kind_has_its_outcome_and_code(error, outcome, code):
    assert isinstance(error, ToolError)
    assert error.outcome == outcome
    assert error.code == code
    assert error.error_type == code


def test_a_permanent_failure_without_a_code_says_what_to_write():
    with pytest.raises(ValueError, match=r"needs a code, for example code='INTERNAL'"):
        ToolFailure("book", "calendar_broken")


def test_transient_is_never_implied_by_a_code():
    assert not ToolFailure("t", "down", code="UNAVAILABLE").transient
    assert not ToolFailure("t", "busy", code="RATE_LIMITED").transient


@pytest.mark.parametrize("reason", ["", "Slot taken", "slot-taken", "SLOT", "1st", "ä", "a" * 201])
def test_a_reason_is_a_snake_case_code(reason):
    with pytest.raises(ValueError, match="snake_case"):
        ToolFailure("t", reason, transient=True)


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf")])
def test_retry_after_is_a_finite_number_of_seconds(seconds):
    with pytest.raises(ValueError, match="retry_after"):
        ToolFailure("t", "down", transient=True, retry_after=seconds)


def test_a_code_outside_the_closed_set_is_refused():
    with pytest.raises(
        ValueError, match="code is 'TEAPOT'; write one of INVALID_ARGUMENT, NOT_FOUND"
    ):
        ToolFailure("t", "down", code="TEAPOT")


def test_a_code_that_the_outcome_does_not_allow_is_refused():
    assert ToolTimedOutError("t", code="UNAVAILABLE").code == "UNAVAILABLE"
    with pytest.raises(ValueError, match="that of a ToolTimedOutError is always UNAVAILABLE"):
        ToolTimedOutError("t", code="INTERNAL")


def test_transient_is_true_or_false():
    with pytest.raises(TypeError, match="transient is 'no'; write True or False"):
        ToolFailure("t", "down", transient="no")


def test_the_base_of_all_is_a_failure():
    @guard("t")
    def tool():
        raise ToolError("t", "odd", code="CONFLICT")

    assert_envelope(tool(), code="CONFLICT", reason="odd", action="choose_alternative")


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))]
)
def test_an_error_survives_copying_and_pickling(duplicate):
    error = ToolFailure(
        "t", "down", transient=True, message="Later.", retry_after=2.5, effect="none", evidence="E."
    )
    again = duplicate(error)
    assert type(again) is ToolFailure
    assert vars(again) == vars(error)
    assert str(again) == "t: down (UNAVAILABLE). Later."


def test_the_raw_error_is_copied_but_does_not_leave_its_process():
    error = ToolFailure("t", "down", transient=True)
    error.raw_error = raw = ConnectionError("db.internal:5432")
    assert copy.copy(error).raw_error is raw
    assert b"db.internal" not in pickle.dumps(error)
    assert pickle.loads(pickle.dumps(error)).raw_error is None


@pytest.mark.parametrize("duplicate", [copy.copy, lambda e: pickle.loads(pickle.dumps(e))])
def test_what_a_subclass_holds_in_slots_is_copied(duplicate):
    again = duplicate(_Slotted("t", "down", seat="12A"))
    assert (again.seat, again.reason, again.code) == ("12A", "down", "INTERNAL")


class _Slotted(ToolFailure):
    __slots__ = ("seat",)

    def __init__(self, tool, reason, *, seat):
        super().__init__(tool, reason, code="INTERNAL")
        self.seat = seat
