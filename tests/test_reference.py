"""References against the vectors of the contract, and what people paste."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfault import reference

EPOCH = date(2024, 1, 1)
VECTORS = [
    (0x123456789AB, 1064, "938N-KRKA-S18P"),
    (0x2F0E1D2C3B4, 1064, "QGW7-9C7D-118Q"),
    (1, 1, "0000-0000-801K"),
    (2**42 - 1, 8191, "ZZZZ-ZZZZ-ZZZ5"),
]
SYMBOLS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
references = st.builds(
    lambda bits, days: reference.new(random=bits, day=EPOCH + timedelta(days=days)),
    st.integers(0, 2**42 - 1),
    st.integers(0, 8191),
)


@pytest.mark.parametrize(("random", "day", "printed"), VECTORS)
def test_a_reference_is_printed_as_the_contract_says(random, day, printed):
    assert reference.new(random=random, day=EPOCH + timedelta(days=day)) == printed


@pytest.mark.parametrize(("random", "day", "printed"), VECTORS)
def test_the_day_of_issue_is_read_back(random, day, printed):
    assert reference.day_of(printed) == EPOCH + timedelta(days=day)


def test_a_new_reference_carries_todays_utc_day():
    before = datetime.now(UTC).date()
    issued = reference.day_of(reference.new())
    assert before <= issued <= datetime.now(UTC).date()


def test_a_thousand_references_of_one_day_differ():
    assert len({reference.new() for _ in range(1000)}) == 1000


@given(references, st.integers(0, 11), st.sampled_from(SYMBOLS))
def test_every_single_wrong_symbol_is_caught(made, position, symbol):
    symbols = list(made.replace("-", ""))
    wrong = "".join([*symbols[:position], symbol, *symbols[position + 1 :]])
    assert reference.is_valid(wrong) == (symbols[position] == symbol)


@given(references, st.integers(0, 11), st.integers(0, 11))
def test_every_swap_of_two_symbols_is_caught_and_suggested(made, i, j):
    symbols = list(made.replace("-", ""))
    symbols[i], symbols[j] = symbols[j], symbols[i]
    swapped = "".join(symbols)
    if swapped == made.replace("-", ""):
        assert reference.is_valid(swapped)
    else:
        assert not reference.is_valid(swapped)
        assert made in reference.near_misses(swapped)


@given(references, st.integers(0, 11), st.sampled_from(SYMBOLS))
def test_the_right_reference_is_among_the_near_misses_of_a_typing_error(made, position, symbol):
    symbols = list(made.replace("-", ""))
    if symbols[position] != symbol:
        symbols[position] = symbol
        assert made in reference.near_misses("".join(symbols))


def test_near_misses_are_valid_and_few():
    near = reference.near_misses("938N-KRKA-S18Q")
    assert "938N-KRKA-S18P" in near
    assert all(map(reference.is_valid, near))
    assert 12 <= len(near) <= 78  # 12 substitutions, at most 66 swaps


def test_a_valid_reference_has_no_near_misses():
    assert reference.near_misses("938N-KRKA-S18P") == []


@pytest.mark.parametrize(
    "typed",
    [
        "938n-krka-s18p",
        "938NKRKAS18P",
        " 938N KRKA S18P ",
        "938N–KRKA–S18P",
        "938N-KRKA-SI8P",
        "938n-krka-sl8p",
        "9 3 8 N K R K A S 1 8 P",
    ],
)
def test_case_dashes_spaces_and_look_alikes_do_not_matter(typed):
    assert reference.canonical(typed) == "938N-KRKA-S18P"


def test_the_letter_o_is_read_as_zero():
    assert reference.canonical("oOoO-OOOO-8O1K") == "0000-0000-801K"


@pytest.mark.parametrize("text", ["", "938N-KRKA", "938N-KRKA-S18PX", "938U-KRKA-S18P", "é" * 12])
def test_what_has_not_the_form_of_a_reference_is_none(text):
    assert reference.canonical(text) is None
    assert not reference.is_valid(text)
    assert reference.day_of(text) is None


@pytest.mark.parametrize(
    ("pasted", "first"),
    [
        ("938N-KRKA-S18P", "938N-KRKA-S18P"),
        ("1a2b3c4d", "1a2b3c4d"),
        ("3f2b8c1e-0a4d-4c55-9a43-51d0a2f0c111", "3f2b8c1e-0a4d-4c55-9a43-51d0a2f0c111"),
    ],
)
def test_what_was_given_is_looked_up_as_given_first(pasted, first):
    assert reference.candidates(pasted)[0] == first


@pytest.mark.parametrize(
    "pasted",
    [
        "The tool failed unexpectedly. Tell the user; do not retry. (ref 938N-KRKA-S18P)",
        "it says ref 938n krka s18p, what do I do now? I have tried three times since this morning",
        '{"status": "error", "error": {"code": "INTERNAL", "ref": "938N-KRKA-S18P"}}',
        "Hello,\nmy reference: 938NKRKAS18P\nThanks",
    ],
)
def test_a_reference_is_found_inside_a_sentence_or_an_envelope(pasted):
    assert "938N-KRKA-S18P" in reference.candidates(pasted)[:2]


def test_a_foreign_reference_is_found_behind_the_word_ref():
    assert "7K3QX-9MPT2" in reference.candidates("it says ref 7K3QX-9MPT2")


def test_a_mistyped_reference_in_a_sentence_is_still_offered():
    assert "938N-KRKA-S18Q" in reference.candidates("they told me (ref 938N-KRKA-S18Q) and hung up")


def test_every_reference_of_a_text_is_found_once_and_in_its_order():
    text = "first qgw79c7d118q, then 938N-KRKA-S18P (938N KRKA S18P again), and 938N-KRKA-S18Q, which is none"
    assert reference.all_in(text) == ["QGW7-9C7D-118Q", "938N-KRKA-S18P"]


@pytest.mark.parametrize("text", ["", "   ", "\n", "\x00", "\x1b[31m"])
def test_nothing_that_can_be_a_reference_gives_no_candidates(text):
    assert reference.candidates(text) == []


@given(st.text(max_size=300))
def test_any_text_may_be_pasted(text):
    assert all(0 < len(found) <= 64 for found in reference.candidates(text))


@pytest.mark.parametrize(
    "written",
    [
        "９３８Ｎ-ＫＲＫＡ-Ｓ１８Ｐ",
        "９３８ｎ－ｋｒｋａ－ｓ１８ｐ",
        "見て: ９３８Ｎ－ＫＲＫＡ－Ｓ１８Ｐ、だめ",
    ],
)
def test_full_width_symbols_are_read(written):
    assert "938N-KRKA-S18P" in reference.candidates(written)
    assert reference.all_in(written) == ["938N-KRKA-S18P"]


def test_a_text_is_read_for_65536_characters():
    room = "x " * 32_761
    assert reference.all_in(f"{room}938N-KRKA-S18P") == ["938N-KRKA-S18P"]
    assert reference.all_in(f"{room} 938N-KRKA-S18P") == []
