import asyncio
import email.message
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http import HTTPStatus

import pytest

import toolfault
from toolfault import (
    Code,
    Effect,
    ToolErrorMap,
    ToolFailure,
    ToolRefusal,
    ToolResultError,
    ToolTimedOutError,
    by_status,
    permanent,
    refusal,
    timed_out,
    transient,
)
from toolfault.error_map import by_cause
from toolfault.transport import TRANSPORT

MISSING = permanent("missing", code=Code.NOT_FOUND)
BROKEN = permanent("broken", code=Code.UNAVAILABLE)
BUSY = transient("busy")


class Supplier(Exception):  # noqa: N818
    pass


class Closed(Supplier):
    pass


class ClosedToday(Closed):
    pass


class Status(Exception):  # noqa: N818
    def __init__(self, **attributes):
        super().__init__()
        self.__dict__.update(attributes)


class Answer:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


def reason(error_map, error):
    return error_map.classify(error, tool="cancel").reason


def raised(make, *, cause=None, during=None):
    """The exception `make` gives, raised from `cause` or in the handler of `during`."""
    with pytest.raises(Exception) as caught:  # noqa: PT011, PT012 - whichever the test needs
        try:
            if during is not None:
                raise during
            raise make() from cause
        except type(during or GeneratorExit()):
            raise make()  # noqa: B904 - the implicit context is the point
    return caught.value


# --- builders ------------------------------------------------------------------------------------


def test_transient_says_unavailable_and_that_nothing_landed():
    error = ToolErrorMap({Closed: transient("upstream_unavailable", retry_after=2.0)}).classify(
        Closed(), tool="cancel"
    )

    assert type(error) is ToolFailure
    assert (error.tool, error.reason, error.code) == (
        "cancel",
        "upstream_unavailable",
        "UNAVAILABLE",
    )
    assert (error.transient, error.retry_after) == (True, 2.0)


def test_permanent_carries_code_message_and_effect():
    rule = permanent(
        "rejected", code=Code.CONFLICT, message="Choose another slot.", effect=Effect.NONE
    )
    error = ToolErrorMap({Closed: rule}).classify(Closed(), tool="cancel")

    assert (error.transient, error.code, error.message) == (
        False,
        "CONFLICT",
        "Choose another slot.",
    )
    assert error.effect is Effect.NONE


def test_permanent_needs_a_code():
    with pytest.raises(TypeError, match="code"):
        permanent("rejected")


def test_a_refusal_is_an_answer_with_its_message():
    rule = refusal("booking_not_cancellable", "This fare is non-refundable.")
    error = ToolErrorMap({Closed: rule}).classify(Closed(), tool="cancel")

    assert type(error) is ToolRefusal
    assert (error.code, error.message) == ("CONFLICT", "This fare is non-refundable.")


def test_timed_out_does_not_know_the_effect_unless_told():
    error = ToolErrorMap({Closed: timed_out()}).classify(Closed(), tool="cancel")

    assert type(error) is ToolTimedOutError
    assert (error.reason, error.code, error.transient) == ("timed_out", "UNAVAILABLE", False)
    assert error.effect is None


@pytest.mark.parametrize(
    "write",
    [
        lambda: transient("Not Snake"),
        lambda: transient("busy", retry_after=-1),
        lambda: permanent("Not Snake", code=Code.INTERNAL),
        lambda: permanent("broken", code="BROKEN"),
        lambda: refusal("Not Snake", "No."),
        lambda: timed_out("Not Snake"),
    ],
)
def test_a_mistake_in_a_rule_shows_where_the_rule_is_written(write):
    with pytest.raises(ValueError, match=r"Not Snake|-1|BROKEN"):
        write()


def test_no_text_of_an_exception_reaches_the_typed_error():
    secret = "sk-" + "test-1234567890"
    for rule in (BUSY, BROKEN, timed_out(), refusal("no", "No.")):
        error = ToolErrorMap({Supplier: rule}).classify(Supplier(secret), tool="cancel")

        assert secret not in repr(vars(error)) + str(error) + repr(error.args)


# --- rules by type -------------------------------------------------------------------------------


def test_the_most_specific_type_in_the_mro_wins_whatever_the_order_of_the_rules():
    error_map = ToolErrorMap({Supplier: BROKEN, Closed: BUSY})

    assert reason(error_map, Supplier()) == "broken"
    assert reason(error_map, Closed()) == "busy"
    assert reason(error_map, ClosedToday()) == "busy"


def test_of_two_bases_the_first_in_the_mro_wins():
    class Both(ConnectionError, Supplier):  # noqa: N818
        pass

    assert reason(ToolErrorMap({Supplier: BROKEN, OSError: BUSY}), Both()) == "busy"


def test_a_type_may_be_named_without_importing_it():
    error_map = ToolErrorMap({"builtins.ConnectionError": BUSY, "builtins.OSError": BROKEN})

    assert reason(error_map, ConnectionResetError()) == "busy"
    assert reason(error_map, FileNotFoundError()) == "broken"


def test_a_rule_that_gives_none_does_not_apply():
    error_map = ToolErrorMap({Closed: lambda tool, error: None, Supplier: BROKEN})

    assert reason(error_map, Closed()) == "broken"


# --- statuses ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        Status(status_code=404),
        Status(status=404),
        Status(status=HTTPStatus.NOT_FOUND),
        Status(response=Answer(status_code=404)),
        Status(response=Answer(status=404)),
        Status(response={"ResponseMetadata": {"HTTPStatusCode": 404}}),
    ],
)
def test_where_no_type_matches_the_status_decides(error):
    found = ToolErrorMap(statuses={404: MISSING}).classify(error, tool="cancel")

    assert (found.reason, found.code) == ("missing", "NOT_FOUND")


@pytest.mark.parametrize("status", [None, "404", True, 0, 42, 4040, 404.0])
def test_what_is_no_http_status_is_not_read_as_one(status):
    rules = dict.fromkeys(range(100, 600), BUSY)

    assert reason(ToolErrorMap(statuses=rules), Status(status=status)) == "unmapped_failure"


def test_a_type_rule_comes_before_the_status():
    error_map = ToolErrorMap({Status: BROKEN}, statuses={404: MISSING})

    assert reason(error_map, Status(status_code=404)) == "broken"


def test_by_status_lets_the_statuses_decide_and_falls_back_on_its_own_rule():
    no = refusal("booking_not_cancellable", "This fare is non-refundable.")
    error_map = ToolErrorMap({Status: by_status(BROKEN)}, statuses={409: no})

    assert reason(error_map, Status(status_code=409)) == "booking_not_cancellable"
    assert reason(error_map, Status(status_code=503)) == "broken"
    assert reason(error_map, Status()) == "broken"


def test_the_fallback_of_by_status_is_the_authors_word_also_before_the_transport_map():
    error_map = ToolErrorMap({Status: by_status(BROKEN)}).before(TRANSPORT)

    assert reason(error_map, Status(status_code=503)) == "broken"


def test_an_attribute_that_raises_is_no_status():
    class Hostile(Exception):  # noqa: N818
        @property
        def status_code(self):
            raise RuntimeError

        @property
        def response(self):
            raise RuntimeError

        def __str__(self):
            raise RuntimeError

    assert reason(TRANSPORT, Hostile()) == "unmapped_failure"


# --- maps one after the other --------------------------------------------------------------------


def test_the_authors_map_is_asked_before_the_transport_map():
    error_map = ToolErrorMap({ConnectionRefusedError: BROKEN}).before(TRANSPORT)

    assert reason(error_map, ConnectionRefusedError()) == "broken"
    assert reason(error_map, TimeoutError()) == "timed_out"


def test_a_map_keeps_the_one_it_was_put_before():
    chained = ToolErrorMap({Closed: BUSY}).before(ToolErrorMap({Supplier: BROKEN}))
    error_map = chained.before(ToolErrorMap({KeyError: MISSING}))

    found = [reason(error_map, error) for error in (Closed(), Supplier(), KeyError())]

    assert found == ["busy", "broken", "missing"]


def test_the_guard_asks_the_authors_map_first():
    @toolfault.guard("cancel", error_map=ToolErrorMap({Closed: BUSY}))
    def cancel(error):
        raise error

    assert cancel(Closed())["error"]["reason"] == "busy"
    assert cancel(ConnectionRefusedError())["error"]["reason"] == "upstream_unavailable"


# --- three refusals ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [KeyError("slot"), FileNotFoundError(2, "No such file"), PermissionError(13, "x"), Supplier()],
)
def test_an_exception_no_rule_knows_is_a_permanent_unmapped_failure(error):
    found = TRANSPORT.classify(error, tool="cancel")

    assert type(found) is ToolFailure
    assert (found.reason, found.code) == ("unmapped_failure", "INTERNAL")
    assert (found.transient, found.effect) == (False, None)


@pytest.mark.parametrize(
    "kind", [asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit]
)
def test_what_is_not_an_exception_is_raised_again(kind):
    error = kind()

    with pytest.raises(kind) as caught:
        ToolErrorMap({BaseException: BUSY}).classify(error, tool="cancel")

    assert caught.value is error


def test_an_error_in_the_taxonomy_is_returned_untouched():
    error = ToolRefusal("book", "slot_taken", "It was just taken.")

    assert ToolErrorMap({Exception: BUSY}).classify(error, tool="cancel") is error
    assert vars(error)["tool"] == "book"


# --- causes and contexts -------------------------------------------------------------------------


def test_the_cause_of_an_unknown_exception_decides():
    error = raised(Supplier, cause=raised(Supplier, cause=ConnectionRefusedError()))

    assert reason(TRANSPORT, error) == "upstream_unavailable"


def test_the_outermost_exception_a_rule_knows_decides():
    error = raised(Closed, cause=TimeoutError())

    assert reason(ToolErrorMap({Closed: BROKEN, TimeoutError: BUSY}), error) == "broken"


def test_a_typed_error_in_the_cause_is_the_answer():
    typed = ToolRefusal("book", "slot_taken", "It was just taken.")

    assert TRANSPORT.classify(raised(Supplier, cause=typed), tool="cancel") is typed


def test_by_cause_asks_the_cause_first_and_falls_back_on_its_own_rule():
    error_map = ToolErrorMap({Supplier: by_cause(BROKEN), TimeoutError: timed_out()})

    assert reason(error_map, raised(Supplier, cause=TimeoutError())) == "timed_out"
    assert reason(error_map, raised(Supplier, cause=KeyError())) == "broken"
    assert reason(error_map, Supplier()) == "broken"


def test_a_bug_in_the_handler_of_a_refused_connection_is_a_bug():
    error = raised(KeyError, during=ConnectionRefusedError())

    found = TRANSPORT.classify(error, tool="cancel")

    assert error.__context__ is not None
    assert (found.reason, found.code, found.transient) == ("unmapped_failure", "INTERNAL", False)


def test_a_context_that_the_exception_holds_is_a_cause():
    refused = ConnectionRefusedError()
    error = raised(lambda: Supplier("could not book", refused), during=refused)

    assert reason(TRANSPORT, error) == "upstream_unavailable"


def test_from_none_cuts_the_context_off():
    refused = ConnectionRefusedError()
    error = raised(lambda: Supplier(refused), during=refused)
    error.__suppress_context__ = True

    assert reason(TRANSPORT, error) == "unmapped_failure"


def test_a_cycle_of_causes_ends():
    first, second = Supplier(), Supplier()
    first.__cause__, second.__cause__ = second, first

    assert reason(TRANSPORT, first) == "unmapped_failure"


def test_a_cancellation_is_nobodys_cause():
    error = raised(Supplier, cause=asyncio.CancelledError())

    assert reason(ToolErrorMap({BaseException: BUSY, Exception: BROKEN}), error) == "broken"
    assert reason(TRANSPORT, error) == "unmapped_failure"


# --- groups --------------------------------------------------------------------------------------

BY_PART = ToolErrorMap(
    {
        ConnectionRefusedError: BUSY,
        BlockingIOError: transient("busy_long", retry_after=30),
        TimeoutError: timed_out(),
        LookupError: MISSING,
        Closed: refusal("closed", "Closed today."),
    }
)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([ConnectionRefusedError()], "busy"),
        ([ConnectionRefusedError(), ConnectionRefusedError()], "busy"),
        # all wait, so the longest wait is kept
        ([ConnectionRefusedError(), BlockingIOError()], "busy_long"),
        # one that is not transient decides
        ([ConnectionRefusedError(), LookupError()], "missing"),
        ([Closed(), ConnectionRefusedError()], "closed"),
        # of these the one whose effect is not known
        ([LookupError(), TimeoutError(), Closed()], "timed_out"),
        # and of those the bug, which somebody has to see
        ([TimeoutError(), ValueError()], "unmapped_failure"),
        ([ToolResultError("cancel"), ValueError()], "invalid_result"),
        ([ExceptionGroup("inner", [TimeoutError()]), ConnectionRefusedError()], "timed_out"),
        ([raised(Supplier, cause=ConnectionRefusedError())], "busy"),
    ],
)
def test_of_a_group_the_part_that_asks_for_most_care_decides(parts, expected):
    assert reason(BY_PART, ExceptionGroup("several", parts)) == expected


def test_a_group_is_unwrapped_as_a_cause():
    group = ExceptionGroup("several", [ConnectionRefusedError()])

    assert reason(BY_PART, raised(Supplier, cause=group)) == "busy"


def test_two_parts_with_one_cause_are_both_explained_by_it():
    cause = ConnectionRefusedError()
    parts = [raised(Supplier, cause=cause), raised(Supplier, cause=cause)]

    assert reason(BY_PART, ExceptionGroup("several", parts)) == "busy"


def test_a_group_whose_part_was_caused_by_the_group_ends():
    part = Supplier()
    part.__cause__ = ExceptionGroup("several", [part])

    assert reason(BY_PART, part.__cause__) == "unmapped_failure"


def test_a_group_with_a_cancellation_is_raised_again():
    group = BaseExceptionGroup("several", [asyncio.CancelledError(), ConnectionRefusedError()])

    with pytest.raises(BaseExceptionGroup) as caught:
        BY_PART.classify(group, tool="cancel")

    assert caught.value is group


async def test_the_group_of_a_real_task_group_is_unwrapped():
    async def refused():
        raise ConnectionRefusedError

    with pytest.raises(ExceptionGroup) as caught:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(refused())

    assert reason(BY_PART, caught.value) == "busy"


# --- Retry-After ---------------------------------------------------------------------------------

NOON = datetime(2026, 10, 6, 12, 0, 0, tzinfo=UTC)


def headers(**values):
    message = email.message.Message()
    for name, value in values.items():
        message[name.replace("_", "-")] = value
    return message


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        ("0", 0.0),
        ("7", 7.0),
        (" 7 ", 7.0),
        ("1.5", 1.5),
        ("86400", 86_400.0),
        ("86401", 86_400.0),
        ("9" * 30, 86_400.0),
        (format_datetime(NOON + timedelta(seconds=90), usegmt=True), 90.0),
        (format_datetime(NOON - timedelta(seconds=90), usegmt=True), 0.0),
        (format_datetime(NOON + timedelta(days=400), usegmt=True), 86_400.0),
        ("Tuesday, 06-Oct-26 12:00:30 GMT", 30.0),  # the obsolete form of RFC 850
        ("-1", None),
        ("nan", None),
        ("inf", None),
        ("1e3", None),
        ("٧", None),
        ("soon", None),
        ("9" * 400, None),
        ("", None),
    ],
)
def test_retry_after_is_seconds_or_a_date_by_the_clock_of_the_other_side(told, seconds):
    carried = headers(Retry_After=told, Date=format_datetime(NOON, usegmt=True))
    error = ToolErrorMap({Status: BUSY}).classify(Status(headers=carried), tool="cancel")

    assert error.retry_after == seconds


def test_without_a_date_of_the_other_side_our_clock_is_read():
    soon = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    error = ToolErrorMap({Status: BUSY}).classify(
        Status(headers={"retry-after": soon}), tool="cancel"
    )

    assert 3_000 < error.retry_after <= 3_600


@pytest.mark.parametrize(
    "error",
    [
        Status(headers={"Retry-After": "7"}),
        Status(headers={"retry-after": "7"}),
        Status(response=Answer(headers={"Retry-After": "7"})),
        Status(response={"ResponseMetadata": {"HTTPHeaders": {"retry-after": "7"}}}),
        Status(response=Answer(headers={"Retry-After": "7"}), headers={"Retry-After": "9"}),
    ],
)
def test_retry_after_is_read_from_the_response_or_from_the_exception(error):
    assert ToolErrorMap({Status: BUSY}).classify(error, tool="cancel").retry_after == 7.0


@pytest.mark.parametrize("value", [None, 7, b"7", ["7"]])
def test_headers_of_another_shape_are_passed_over(value):
    for shape in (value, {"Retry-After": value}):
        found = ToolErrorMap({Status: BUSY}).classify(Status(headers=shape), tool="cancel")

        assert found.retry_after is None


def test_what_the_other_side_asks_wins_over_the_rules_own_wait():
    error_map = ToolErrorMap({Status: transient("busy", retry_after=2.0)})

    asked = error_map.classify(Status(headers={"Retry-After": "0"}), tool="cancel")
    silent = error_map.classify(Status(), tool="cancel")

    assert (asked.retry_after, silent.retry_after) == (0.0, 2.0)


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ({ValueError: "transient"}, "write transient"),
        ({ValueError: transient}, "write transient"),
        ({"x": transient("down")}, "is no exception"),
        ({int: transient("down")}, "is no exception"),
        ({429: transient("busy")}, r"statuses have a dict of their own, statuses="),
    ],
)
def test_a_rule_that_could_never_be_used_is_said_where_it_is_written(rules, told):
    with pytest.raises(ValueError, match=told):
        ToolErrorMap(rules)


@pytest.mark.parametrize("status", [True, 42, 600, "429", ValueError])
def test_a_status_that_no_answer_has_is_said_where_it_is_written(status):
    with pytest.raises(ValueError, match="is no status: give a number from 100 to 599"):
        ToolErrorMap(statuses={status: transient("busy")})
