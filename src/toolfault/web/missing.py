"""The words of each state, and the nearest references to one that was mistyped."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

from toolfault import reference as ref
from toolfault.store.queries.base import REFERENCE_DAYS
from toolfault.web.models import Answer, Match, State, Suggestion

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date, datetime

    from toolfault.store.queries.references import Reference
    from toolfault.web.lookup import Asked

_SYMBOLS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_LENGTH = 12
_MOST_SUGGESTIONS = 5
#: Stands in the documentation, the help of the commands and the search field.
EXAMPLE = "938N-KRKA-S18P"
#: Symbols of ours and one mark between them, or a digit among them: a part of a reference, no word.
_PART = re.compile(r"(?=.*[-\d])[0-9A-Za-z]{2,4}(?:[- ]?[0-9A-Za-z]{1,4}){0,4}")
_ASK_AGAIN = (
    "I could not find that reference. Could you copy it from the chat once more, "
    "or tell me what you were trying to do and at about what time?"
)


def found(reference: str, day: date | None, matches: tuple[Match, ...]) -> Answer:
    """One or several calls are here."""
    first = matches[0].words
    title, tell = first.title, first.tell_user
    if len(matches) > 1:
        title = f"{len(matches)} calls carry this reference"
        tell = f"I have found your reference and am looking into it. Your reference is {reference}."
    return Answer(
        reference=reference,
        state=State.FOUND,
        title=title,
        explanation=first.summary
        if len(matches) == 1
        else "Each of them is shown below, newest first.",
        next_step=first.owner_detail,
        tell_user=tell,
        issued_on=day,
        matches=matches,
    )


def expired(reference: str, day: date | None, asked: Asked, matches: tuple[Match, ...]) -> Answer:
    """Its details are older than what is kept."""
    if day and not matches and day >= asked.today - timedelta(days=REFERENCE_DAYS):
        return _never_here(reference, day, asked)
    issued = f"That reference is from {day:%-d %B %Y}" if day else "That reference is an old one"
    kept = "The outline below is kept." if matches else "Nothing of it is kept any more."
    tell = (
        matches[0].words.tell_user
        if len(matches) == 1
        else (
            f"{issued}; its details have been deleted. If it happens again, please send me the new reference."
        )
    )
    return Answer(
        reference=reference,
        state=State.EXPIRED,
        title="This reference has expired: its details were deleted",
        explanation=f"Details are kept for {asked.retention_days} days. {kept}",
        next_step="If it happened again, ask the user for the new reference.",
        tell_user=tell,
        issued_on=day,
        matches=matches,
    )


def _never_here(reference: str, day: date, asked: Asked) -> Answer:
    """Of a day whose details are deleted but whose outlines are kept, and it has none."""
    return Answer(
        reference=reference,
        state=State.EXPIRED,
        title="The details of its day are deleted by now, and nothing of this reference is kept",
        explanation=f"Details are kept for {asked.retention_days} days, outlines for {REFERENCE_DAYS}. "
        "There is no outline of it, so it was probably never received here, or is from before this "
        "database.",
        next_step="If it happened again, ask the user for the new reference.",
        tell_user=f"That reference is from {day:%-d %B %Y}, and I could not find anything under it. "
        "If it happens again, please send me the new reference.",
        issued_on=day,
    )


def pending(
    reference: str, until: datetime, day: date | None, matches: tuple[Match, ...]
) -> Answer:
    """It may still be on its way."""
    part = "Only a part of its signals is here" if matches else "Nothing with it has arrived yet"
    return Answer(
        reference=reference,
        state=State.PENDING,
        title="This reference is well formed, but its details have not arrived yet",
        explanation=f"{part}. They may be on their way until {until:%H:%M} UTC on {until:%-d %B}; "
        "calls that succeeded leave nothing under a reference.",
        next_step=f"Look again, at the latest at {until:%H:%M} UTC on {until:%-d %B}.",
        tell_user="I have your reference, but the details are still on their way to me. "
        f"Please do not try again yet; I will come back to you. Your reference is {reference}.",
        issued_on=day,
        look_again_at=until,
        matches=matches,
    )


def not_received(reference: str, day: date, dropped: int) -> Answer:
    """Well formed, of a day that is kept, and nothing is here."""
    lost = (
        f"Services reported {dropped:,} dropped records around that day; it may be one of them."
        if dropped
        else "No service reported dropped records around that day."
    )
    return Answer(
        reference=reference,
        state=State.NOT_RECEIVED,
        title="This reference is well formed, but nothing with it was received",
        explanation=f"It was issued on {day:%-d %B %Y}. Its record was lost, dropped or never sent, "
        f"or the call succeeded, which leaves nothing under a reference. {lost}",
        next_step="Ask the user what they were doing and when, and look in the list of errors around that time.",
        tell_user="I have your reference, but its details did not reach us. Could you tell me what you "
        "were trying to do and at about what time? Please do not try again before it has been checked.",
        issued_on=day,
        dropped=dropped,
    )


def mistyped(reference: str, near_by: tuple[Suggestion, ...]) -> Answer:
    """The check symbol does not fit."""
    return Answer(
        reference=reference,
        state=State.MISTYPED,
        title="No such reference: at least one character is wrong",
        explanation="The check symbol does not fit, so this reference was never given to anyone.",
        next_step="Compare it with the nearest references."
        if near_by
        else "Ask the user to copy it from the chat once more.",
        tell_user=_ASK_AGAIN,
        suggestions=near_by,
    )


def unknown(reference: str, day: date | None) -> Answer:
    """Nothing is stored under it, and it says nothing about itself."""
    why = (
        f"It says that it was issued on {day:%-d %B %Y}, which is still to come, so it was never issued."
        if day
        else _wrong_form(reference)
    )
    return Answer(
        reference=reference,
        state=State.UNKNOWN,
        title="Nothing is known under this reference",
        explanation=why,
        next_step="Ask the user to copy it from the chat once more; it has twelve characters, 4-4-4.",
        tell_user=_ASK_AGAIN,
        issued_on=day,
    )


def _wrong_form(reference: str) -> str:
    symbols = sum(symbol.isalnum() for symbol in reference)
    if _PART.fullmatch(reference) and symbols != _LENGTH:
        kind = "It looks like a part of a reference" if symbols < _LENGTH else "It is too long"
        return f"{kind}: it has {symbols} characters, and a reference has twelve, 4-4-4."
    return "It does not have the form of a reference of ours, and nothing is stored under it."


def example(answer: Answer) -> Answer:
    """The documentation's example, which somebody tries: well formed, and nobody will send it."""
    return answer.model_copy(
        update={
            "state": State.NOT_RECEIVED,
            "title": "This is the example of the documentation",
            "explanation": "No user has it: it stands for the references that your own agents give.",
            "next_step": "Let a guarded tool fail, or run `toolfault demo`, and look its reference up.",
            "tell_user": "That is the example of our documentation, not a reference of your own. "
            "Could you copy yours from the chat?",
            "issued_on": None,
            "look_again_at": None,
            "dropped": None,
        }
    )


def near(reading: str) -> list[str]:
    """Every valid reference one wrong, swapped, missing or additional symbol away."""
    if wrong := ref.near_misses(reading):
        return wrong
    symbols = "".join(letter for letter in reading.upper() if letter.isalnum())
    if len(symbols) == _LENGTH - 1:
        tries = [symbols[:i] + s + symbols[i:] for i in range(_LENGTH) for s in _SYMBOLS]
    elif len(symbols) == _LENGTH + 1:
        tries = [symbols[:i] + symbols[i + 1 :] for i in range(_LENGTH + 1)]
    else:
        return []
    forms = [ref.canonical(one) for one in tries if ref.is_valid(one)]
    return [*dict.fromkeys(form for form in forms if form)]


def suggestions(reading: str, rows: Sequence[Reference]) -> tuple[Suggestion, ...]:
    """Stored neighbours, newest first, each once."""
    newest = {row.reference_id: row for row in reversed(rows)}
    ranked = sorted(newest.values(), key=lambda row: row.at, reverse=True)
    return tuple(
        Suggestion(
            reference=row.reference_id,
            tool=row.tool,
            outcome=row.outcome,
            at=row.at,
            difference=difference(reading, row.reference_id),
        )
        for row in ranked[:_MOST_SUGGESTIONS]
    )


def difference(typed: str, stored: str) -> str:
    """In words, how a stored reference differs from the one that was typed."""
    typed_symbols = (ref.canonical(typed) or typed.upper()).replace("-", "")
    symbols = stored.replace("-", "")
    if len(typed_symbols) < len(symbols):
        return "one character is missing"
    if len(typed_symbols) > len(symbols):
        return "one character is too many"
    places = [
        i for i, pair in enumerate(zip(typed_symbols, symbols, strict=True)) if pair[0] != pair[1]
    ]
    if len(places) == 1:
        i = places[0]
        return f"character {i + 1} differs: {symbols[i]}, not {typed_symbols[i]}"
    swapped = "".join(symbols[i] for i in places)
    return f"two characters are swapped: {swapped}, not {''.join(typed_symbols[i] for i in places)}"
