"""The words for people: what happened, did it take effect, who has it, what to tell the user.

Every sentence follows from the record and from what the tool declared. Where something is missing
the words are "not known" and why. The words for the user never promise more than the effect allows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolfault.taxonomy import Code, Effect, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

_FAILED = {
    Code.INTERNAL: "{tool} failed because of a fault in the tool",
    Code.UNAVAILABLE: "{tool} failed: a service it depends on was not available",
    Code.RATE_LIMITED: "{tool} failed: a service it depends on was receiving too many requests",
    Code.PERMISSION_DENIED: "{tool} failed: a service it depends on did not accept the tool's own access",
    Code.NOT_FOUND: "{tool} failed: there is no such record",
    Code.CONFLICT: "{tool} failed: the request conflicts with the present state",
    Code.INVALID_ARGUMENT: "{tool} failed: an argument was not accepted",
}
_TITLES = {
    Outcome.OK: "{tool} succeeded",
    Outcome.TIMED_OUT: "{tool} did not finish in time",
    Outcome.DECLINED: "{tool} worked and said no",
    Outcome.REFUSED: "{tool} was not permitted to run",
    Outcome.NOT_FOUND: "The agent called a tool that does not exist",
    Outcome.CANCELLED: "{tool} was cancelled before it finished",
}
_SUMMARIES = {
    Outcome.OK: "The call succeeded.",
    Outcome.FAILED: "This is an error of the call.",
    Outcome.TIMED_OUT: "The call was given up when its time was over.",
    Outcome.DECLINED: "This is an answer, not a fault.",
    Outcome.REFUSED: "A policy or a person said no before anything ran.",
    Outcome.INVALID: "The model's arguments did not match what the tool takes.",
    Outcome.NOT_FOUND: "A deployment mistake: the model was offered, or made up, a tool nobody registered.",
    Outcome.CANCELLED: "Something outside the tool ended the call.",
}
_EFFECTS = {
    Effect.NONE: "No, nothing changed",
    Effect.APPLIED: "Yes",
    Effect.UNKNOWN: "It may have",
}

_SORRY = {
    Code.INTERNAL: "Sorry, this ran into a fault on our side; it was nothing you did.",
    Code.UNAVAILABLE: "Sorry, a service we depend on was not available.",
    Code.RATE_LIMITED: "Sorry, a service we depend on was too busy.",
    Code.PERMISSION_DENIED: "Sorry, this ran into a fault on our side; it was nothing you did.",
    Code.NOT_FOUND: "We could not find what was asked for.",
    Code.CONFLICT: "This could not be done as things stand now.",
    Code.INVALID_ARGUMENT: "A detail of the request was not accepted.",
}
_SORRY_OUTCOME = {
    Outcome.OK: "Our records say that this succeeded.",
    Outcome.TIMED_OUT: "Sorry, this did not finish in time.",
    Outcome.DECLINED: "The answer was no: this could not be done as asked.",
    Outcome.REFUSED: "This was not permitted, so it was not done.",
    Outcome.NOT_FOUND: "Sorry, the assistant tried something that it cannot do.",
    Outcome.CANCELLED: "This was stopped before it finished.",
}
_CAUTION = {
    Effect.NONE: "Nothing was changed.",
    Effect.APPLIED: "The action itself was carried out, so please do not repeat it.",
    Effect.UNKNOWN: "It may already have taken effect, so please check before trying again.",
}
_TWICE = "It may have been carried out twice, so please check."
_CAUTION_NOT_KNOWN = "We do not know yet whether it took effect, so please do not try again before it has been checked."
NOT_KNOWN = "Not known"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the words are made from; None where it is not known."""

    reference: str
    tool: str | None
    outcome: Outcome | None
    code: Code | None
    effect: Effect | None
    attempts: int | None
    possibly_twice: bool = False
    transient: bool = False
    reason: str | None = None
    evidence: str | None = None
    user_message: str | None = None
    writes: bool | None = None
    owner: str | None = None
    owner_contact: str | None = None
    is_declared: bool = False
    reasons: Mapping[str, str] | None = None


def title(facts: Facts) -> str:
    """What happened, as one sentence."""
    tool = facts.tool or "A tool"
    if facts.outcome is None:
        return "Only a part of this call has arrived; how it ended is not known"
    if facts.outcome is Outcome.FAILED:
        return _FAILED[facts.code or Code.INTERNAL].format(tool=tool)
    if facts.outcome is Outcome.INVALID:
        ran = "rejected an argument" if facts.attempts else "did not run: an argument was not valid"
        return f"{tool} {ran}"
    return _TITLES[facts.outcome].format(tool=tool)


def summary(facts: Facts) -> str:
    """The sentence under the title."""
    if facts.outcome is None:
        return "Its record is missing: lost, dropped or never sent."
    return _SUMMARIES[facts.outcome]


def effect(facts: Facts) -> tuple[str, str]:
    """Whether it took effect, and how we know."""
    if facts.effect is None:
        return NOT_KNOWN, "The record of the call has not arrived, and only the record says so."
    if facts.possibly_twice:
        return "Yes, possibly twice", (
            "An earlier attempt may have landed before a later one succeeded, and the tool is not safe to repeat."
        )
    return _EFFECTS[facts.effect], facts.evidence or _how_known(facts)


def _how_known(facts: Facts) -> str:
    if facts.effect is Effect.APPLIED:
        return _how_applied(facts)
    if facts.effect is Effect.UNKNOWN:
        return _how_unknown(facts)
    cases = (
        (facts.writes is False, "The tool only reads: that is how it is declared."),
        (facts.attempts == 0, "Nothing ran."),
        (
            facts.outcome is Outcome.DECLINED,
            "The tool said no, and a tool that says no changes nothing.",
        ),
        (facts.outcome is Outcome.INVALID, "The tool rejected an argument before it did anything."),
        (
            facts.transient,
            "Nothing landed: the service was not reached, or turned the request away.",
        ),
        (
            facts.code in (None, Code.UNAVAILABLE, Code.INTERNAL),
            "The tool says that nothing landed.",
        ),
    )
    rejected = f"The request was rejected ({facts.code}), so nothing landed."
    return next((how for is_so, how in cases if is_so), rejected)


def _how_applied(facts: Facts) -> str:
    if facts.outcome is Outcome.OK:
        return "The tool reported success."
    return "The tool ran to its end; the failure came after that."


def _how_unknown(facts: Facts) -> str:
    if (facts.attempts or 0) > 1:
        return "At least one of the attempts may have landed before the call ended."
    if facts.outcome is Outcome.TIMED_OUT:
        return "The call stopped waiting for an answer; the request may have arrived all the same."
    if facts.outcome is Outcome.CANCELLED:
        return "The call was stopped on its way; it may have landed before."
    return "The failure may have come after the action; nothing in the record excludes it."


def owner(facts: Facts) -> tuple[str, str]:
    """Who takes it from here."""
    if facts.tool is None:
        return NOT_KNOWN, "The tool is not known yet."
    if facts.owner is None:
        why = (
            "has declared no owner"
            if facts.is_declared
            else "has not declared itself to this service"
        )
        return NOT_KNOWN, f"{facts.tool} {why}."
    contact = facts.owner_contact or "No contact is declared."
    if facts.outcome is Outcome.DECLINED:
        return "Nobody needs to act", f"If the user disputes the answer: {facts.owner}. {contact}"
    return facts.owner, contact


def tell_user(facts: Facts) -> tuple[str, str]:
    """What to tell the user, and where the words come from.

    An author's words for a reason were written for the usual case, so they are used only where
    nothing changed, or where the author stated the effect together with them.
    """
    words, source = _authors_words(facts)
    if words is None:
        words = _default_words(facts)
    return " ".join([words, _caution(facts), f"Your reference is {facts.reference}."]), source


def _authors_words(facts: Facts) -> tuple[str | None, str]:
    is_safe = facts.effect is Effect.NONE and not facts.possibly_twice
    if facts.user_message and (is_safe or facts.evidence):
        return _sentence(facts.user_message), "The tool's author wrote them for this call."
    declared = (facts.reasons or {}).get(facts.reason or "")
    if declared and is_safe:
        return _sentence(declared), "The tool's author declared them for this reason."
    if declared or facts.user_message:
        return None, "Default words: the author's own do not say that it may have taken effect."
    if facts.outcome is None:
        return None, "Default words: how the call ended is not known."
    return None, "Default words: the tool has declared none for this reason."


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _default_words(facts: Facts) -> str:
    if facts.outcome is None:
        return "Your reference is genuine, but what happened is not known to us yet."
    if facts.outcome in _SORRY_OUTCOME:
        return _SORRY_OUTCOME[facts.outcome]
    return _SORRY[facts.code or Code.INTERNAL]


def _caution(facts: Facts) -> str:
    if facts.possibly_twice:
        return _TWICE
    if facts.effect is None:
        return _CAUTION_NOT_KNOWN
    if facts.effect is Effect.APPLIED and facts.outcome is Outcome.OK:
        return "There is nothing to repeat."
    return _CAUTION[facts.effect]
