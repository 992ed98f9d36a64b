"""The words for people: plain, from the record alone, and never more than the effect allows."""

from itertools import product

import pytest

from toolfault.taxonomy import Code, Effect, Outcome
from toolfault.web import words
from toolfault.web.words import Facts

AUTHOR = "Nothing was booked, just try again"


def facts(**fields):
    known = {
        "reference": "938N-KRKA-S18P",
        "tool": "book_meeting",
        "outcome": Outcome.FAILED,
        "code": Code.INTERNAL,
        "effect": Effect.UNKNOWN,
        "attempts": 1,
    }
    return Facts(**{**known, **fields})


@pytest.mark.parametrize(
    ("fields", "title"),
    [
        ({}, "book_meeting failed because of a fault in the tool"),
        (
            {"code": Code.UNAVAILABLE},
            "book_meeting failed: a service it depends on was not available",
        ),
        ({"outcome": Outcome.TIMED_OUT}, "book_meeting did not finish in time"),
        ({"outcome": Outcome.DECLINED}, "book_meeting worked and said no"),
        ({"outcome": Outcome.REFUSED}, "book_meeting was not permitted to run"),
        (
            {"outcome": Outcome.INVALID, "attempts": 0},
            "book_meeting did not run: an argument was not valid",
        ),
        ({"outcome": Outcome.INVALID, "attempts": 1}, "book_meeting rejected an argument"),
        ({"outcome": Outcome.NOT_FOUND}, "The agent called a tool that does not exist"),
        ({"outcome": Outcome.CANCELLED}, "book_meeting was cancelled before it finished"),
        ({"outcome": None}, "Only a part of this call has arrived; how it ended is not known"),
    ],
)
def test_the_title_is_one_plain_sentence(fields, title):
    assert words.title(facts(**fields)) == title


@pytest.mark.parametrize(
    ("fields", "answer", "how"),
    [
        ({"effect": Effect.NONE, "writes": False}, "No, nothing changed", "only reads"),
        ({"effect": Effect.NONE, "attempts": 0}, "No, nothing changed", "Nothing ran."),
        ({"effect": Effect.NONE, "outcome": Outcome.DECLINED}, "No, nothing changed", "said no"),
        (
            {"effect": Effect.NONE, "code": Code.CONFLICT},
            "No, nothing changed",
            "rejected (CONFLICT)",
        ),
        (
            {"effect": Effect.NONE, "transient": True, "code": Code.UNAVAILABLE},
            "No, nothing changed",
            "not reached",
        ),
        ({"effect": Effect.NONE}, "No, nothing changed", "The tool says that nothing landed."),
        ({"effect": Effect.APPLIED, "outcome": Outcome.OK}, "Yes", "reported success"),
        ({"effect": Effect.APPLIED}, "Yes", "came after that"),
        ({}, "It may have", "may have come after the action"),
        ({"attempts": 3}, "It may have", "At least one of the attempts"),
        ({"outcome": Outcome.TIMED_OUT}, "It may have", "stopped waiting"),
        (
            {"effect": Effect.APPLIED, "possibly_twice": True},
            "Yes, possibly twice",
            "not safe to repeat",
        ),
        ({"effect": None}, "Not known", "has not arrived"),
        ({"evidence": "The hold was placed."}, "It may have", "The hold was placed."),
    ],
)
def test_the_effect_says_how_we_know(fields, answer, how):
    said, why = words.effect(facts(**fields))
    assert said == answer
    assert how in why


@pytest.mark.parametrize(
    ("fields", "owner", "detail"),
    [
        ({"owner": "Calendar tools", "owner_contact": "#on-call"}, "Calendar tools", "#on-call"),
        ({"owner": "Calendar tools"}, "Calendar tools", "No contact is declared."),
        ({"is_declared": True}, "Not known", "book_meeting has declared no owner."),
        ({}, "Not known", "book_meeting has not declared itself to this service."),
        ({"tool": None}, "Not known", "The tool is not known yet."),
        (
            {"outcome": Outcome.DECLINED, "owner": "Travel desk", "owner_contact": "#travel"},
            "Nobody needs to act",
            "If the user disputes the answer: Travel desk. #travel",
        ),
    ],
)
def test_who_takes_it_is_declared_or_not_known(fields, owner, detail):
    assert words.owner(facts(**fields)) == (owner, detail)


def test_the_authors_words_are_used_where_nothing_changed():
    said, source = words.tell_user(
        facts(
            effect=Effect.NONE,
            reason="calendar_down",
            reasons={"calendar_down": "The calendar is down"},
        )
    )
    assert said == "The calendar is down. Nothing was changed. Your reference is 938N-KRKA-S18P."
    assert "declared" in source


def test_words_written_for_this_call_win_over_declared_ones():
    said, _ = words.tell_user(
        facts(
            effect=Effect.NONE, reason="r", reasons={"r": "declared"}, user_message="for this call"
        )
    )
    assert said.startswith("for this call.")


def test_words_written_together_with_a_stated_effect_are_used_with_a_caution():
    said, _ = words.tell_user(
        facts(user_message="We may hold your slot", evidence="The hold was placed.")
    )
    assert said == (
        "We may hold your slot. It may already have taken effect, so please check before trying again. "
        "Your reference is 938N-KRKA-S18P."
    )


@pytest.mark.parametrize(
    ("effect", "twice"),
    [(Effect.UNKNOWN, False), (Effect.APPLIED, False), (Effect.APPLIED, True), (None, False)],
)
def test_the_authors_words_never_promise_more_than_the_effect_allows(effect, twice):
    for fields in ({"reasons": {"r": AUTHOR}}, {"user_message": AUTHOR}):
        said, source = words.tell_user(
            facts(effect=effect, possibly_twice=twice, reason="r", **fields)
        )
        assert AUTHOR not in said
        assert "Default words" in source


CASES = [
    facts(outcome=outcome, code=code, effect=effect, possibly_twice=twice, attempts=attempts)
    for outcome, code, effect, twice, attempts in product(
        [*Outcome, None], [*Code, None], [*Effect, None], [False, True], [None, 0, 1, 3]
    )
]


def test_every_combination_has_all_its_words():
    for case in CASES:
        effect, how = words.effect(case)
        tell, source = words.tell_user(case)
        texts = [
            words.title(case),
            words.summary(case),
            effect,
            how,
            tell,
            source,
            *words.owner(case),
        ]
        assert all(texts)
        assert "None" not in " ".join(texts)
        assert tell.endswith("Your reference is 938N-KRKA-S18P.")


def test_only_an_effect_of_none_says_that_nothing_was_changed():
    for case in CASES:
        says_unchanged = "Nothing was changed" in words.tell_user(case)[0]
        assert says_unchanged == (case.effect is Effect.NONE and not case.possibly_twice)


def test_nobody_is_told_to_try_again_while_it_may_have_taken_effect():
    for case in CASES:
        if case.effect is not Effect.NONE:
            tell = words.tell_user(case)[0]
            assert any(
                word in tell for word in ("check", "do not repeat it", "nothing to repeat")
            ), tell
