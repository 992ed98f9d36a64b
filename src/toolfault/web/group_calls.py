"""What the newest calls of a group did, share and led to."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolfault.taxonomy import Effect
from toolfault.web.listing import AffectedItem, SampleItem, SharedItem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from toolfault.store.queries.causes import Value
    from toolfault.store.queries.groups import GroupCall, Next

#: A value is shared by the calls of a group from this part of them on.
_MOST_OF = 0.5
_SHARABLE = ("version", "agent", "environment", "model")


def is_unsure(call: GroupCall) -> bool:
    """Whether a call took effect, or may have."""
    return call.effect != Effect.NONE


@dataclass(slots=True)
class Conversation:
    """A conversation that met a group, by the calls of it that did."""

    id: str
    environment: str
    agent: str | None
    last_seen: datetime
    calls: int = 0
    unsure: int = 0
    twice: bool = False
    after: list[Next] = field(default_factory=list)

    def add(self, call: GroupCall) -> None:
        """Counts one of its calls."""
        self.calls += 1
        self.unsure += is_unsure(call)
        self.twice = self.twice or call.possibly_twice
        self.last_seen = max(self.last_seen, call.started_at)

    def again(self, tool: str) -> Next | None:
        """The next call of the same tool, if there was one."""
        return next((one for one in self.after if one.tool == tool), None)

    def is_double(self, tool: str) -> bool:
        """Whether the action may have been carried out more than once."""
        again = self.again(tool)
        landed_again = again is not None and again.effect != Effect.NONE
        return self.twice or self.unsure > 1 or (self.unsure > 0 and landed_again)


def conversations(calls: Iterable[GroupCall]) -> list[Conversation]:
    """The conversations of some calls, those with a possible effect first."""
    found: dict[tuple[str, str], Conversation] = {}
    for call in calls:
        if call.conversation_id is not None:
            key = call.conversation_id, call.environment
            one = found.setdefault(key, Conversation(*key, call.agent, call.started_at))
            one.add(call)
    return sorted(
        found.values(), key=lambda one: (one.twice, one.unsure, one.last_seen), reverse=True
    )


def affected(
    shown: Iterable[Conversation], tool: str, *, ok_kept_since: datetime
) -> list[AffectedItem]:
    """Conversations as the page lists them, those with a possible double effect first."""
    ranked = sorted(shown, key=lambda one: one.is_double(tool), reverse=True)
    return [_affected(one, tool, ok_kept_since) for one in ranked]


def _affected(one: Conversation, tool: str, ok_kept_since: datetime) -> AffectedItem:
    return AffectedItem(
        conversation_id=one.id,
        agent=one.agent,
        calls=one.calls,
        unsure=one.unsure,
        possibly_double=one.is_double(tool),
        afterwards=_afterwards(one, tool, ok_kept_since),
        last_seen=one.last_seen,
    )


def _afterwards(one: Conversation, tool: str, ok_kept_since: datetime) -> str | None:
    again = one.again(tool)
    if again is not None:
        return f"called {tool} again: {again.outcome.replace('_', ' ')}"
    if one.after:
        first = one.after[0]
        return f"went on with {first.tool}: {first.outcome.replace('_', ' ')}"
    return "no call since" if one.last_seen >= ok_kept_since else None


def samples(calls: Sequence[GroupCall], first: GroupCall | None) -> list[SampleItem]:
    """Calls chosen for difference, each once, under the first reason that picked it."""
    kept = [call for call in calls if call.reference_id is not None]
    if not kept:
        return []
    newest = kept[0]
    met = Counter[str | None](call.conversation_id for call in kept if call.conversation_id)
    reasons: list[tuple[str, Callable[[GroupCall], bool]]] = [
        ("newest", lambda _: True),
        (
            "may have taken effect, after a retry",
            lambda call: is_unsure(call) and call.attempts > 1,
        ),
        ("may have taken effect", is_unsure),
        ("changed nothing", lambda call: not is_unsure(call)),
        ("after more than one attempt", lambda call: call.attempts > 1),
        ("met twice in one conversation", lambda call: met[call.conversation_id] > 1),
        ("another agent", lambda call: call.agent != newest.agent),
        ("another version", lambda call: call.version != newest.version),
        ("another environment", lambda call: call.environment != newest.environment),
    ]
    picked: dict[str, SampleItem] = {}
    for why, fits in reasons:
        _pick(picked, why, next(filter(fits, kept), None))
        if why == "newest" and first is not None and first.reference_id is not None:
            _pick(picked, "first that is kept", first)
    return [*picked.values()]


def _pick(picked: dict[str, SampleItem], why: str, call: GroupCall | None) -> None:
    if call is not None and call.reference_id is not None:
        picked.setdefault(call.reference_id, _sample(why, call))


def _sample(why: str, call: GroupCall) -> SampleItem:
    return SampleItem(
        why=why,
        at=call.started_at,
        reference=call.reference_id or "",
        attempts=call.attempts,
        effect=call.effect,
        version=call.version,
        conversation_id=call.conversation_id,
        trace_id=call.trace_id.hex(),
    )


def shared(calls: Sequence[GroupCall], others: Iterable[Value]) -> list[SharedItem]:
    """The values that most calls of the group have; the ones most unlike other errors first."""
    elsewhere: dict[str, Counter[str]] = defaultdict(Counter)
    for other in others:
        elsewhere[other.name][other.value] = other.calls
    items = [item for name in _SHARABLE for item in _values(name, calls, elsewhere[name])]
    return sorted(items, key=lambda item: (item.elsewhere or 0.0) - item.here)


def _values(name: str, calls: Sequence[GroupCall], elsewhere: Counter[str]) -> Iterable[SharedItem]:
    here = Counter(value for call in calls if (value := getattr(call, name)) is not None)
    total, total_elsewhere = here.total(), elsewhere.total()
    for value, count in here.items():
        if count >= _MOST_OF * total:
            share = elsewhere[value] / total_elsewhere if total_elsewhere else None
            yield SharedItem(name=name, value=value, here=count / total, elsewhere=share)
