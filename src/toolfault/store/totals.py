"""What a batch adds to the totals. Only rows that are new count, in the transaction that writes them."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from toolfault import conventions
from toolfault.store.labels import EVENT_METRICS, MODEL, SERVICE, TOOL
from toolfault.store.stage import ATTEMPT_BOUNDS, DURATION_BOUNDS
from toolfault.taxonomy import CODE_OF_QUIET, PAIRS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolfault.store.labels import Labels
    from toolfault.store.rows import Call, Event
    from toolfault.store.stage import Stage

LATE = timedelta(minutes=10)  # after the call's end
_ALIKE = attrgetter("service", "environment", "tool", "outcome", "code")
_RECEIVED_AT = attrgetter("received_at")
_DURATION, _ATTEMPTS = attrgetter("duration_us"), attrgetter("attempts")
_NO_CODE: dict[str, str] = {outcome.value: code for outcome, code in CODE_OF_QUIET.items()}
_EXHAUSTED = "exhausted"
_MODEL_FAILURES = ("error", _EXHAUSTED)

CallKey = tuple[str, str, str, str, str]  # service, environment, tool, outcome, code


class EventKey(NamedTuple):
    """A row of `event_total` but for its slot."""

    metric: str
    service: str
    environment: str
    label: str


class CallTotal:
    """What one row of `call_total` rises by."""

    __slots__ = (
        "attempts", "attempts_buckets", "calls", "duration_buckets", "duration_us", "exemplar",
    )  # fmt: skip

    def __init__(self) -> None:
        self.calls = self.duration_us = self.attempts = 0
        self.duration_buckets = [0] * (len(DURATION_BOUNDS) + 1)
        self.attempts_buckets = [0] * (len(ATTEMPT_BOUNDS) + 1)
        self.exemplar: Call | None = None

    def add(self, calls: Sequence[Call]) -> None:
        """Counts calls in the order of their time, so that the last can be the exemplar."""
        durations, attempts = sorted(map(_DURATION, calls)), sorted(map(_ATTEMPTS, calls))
        self.calls += len(calls)
        self.duration_us += sum(durations)
        self.attempts += sum(attempts)
        _fill(self.duration_buckets, DURATION_BOUNDS, durations)
        _fill(self.attempts_buckets, ATTEMPT_BOUNDS, attempts)
        if self.exemplar is None or calls[-1].started_at >= self.exemplar.started_at:
            self.exemplar = calls[-1]

    def row(self, key: CallKey, slot: int) -> tuple[object, ...]:
        """The row as `call_total` has its columns."""
        shown = self.exemplar
        at, reference, trace = (
            (shown.started_at, shown.reference_id, shown.trace_id) if shown else (None,) * 3
        )
        sums = self.calls, self.duration_us, self.attempts
        return (
            *sums,
            at,
            slot,
            *key,
            reference,
            trace,
            self.duration_buckets,
            self.attempts_buckets,
        )


def _fill(buckets: list[int], bounds: Sequence[int], values: Sequence[int]) -> None:
    """Counts sorted values, each in the bucket of the first bound that is not below it."""
    counted = 0
    for bucket, bound in enumerate(bounds):
        up_to = bisect_right(values, bound, counted)
        buckets[bucket] += up_to - counted
        if up_to == len(values):
            return
        counted = up_to
    buckets[-1] += len(values) - counted


class Totals:
    """Everything one batch adds.

    What is imported is old news whatever its age: all its calls are late, its events are not counted.
    """

    def __init__(self, labels: Labels, slot: int, *, imports: bool = False) -> None:
        self.slot = slot
        self._imports = imports
        self._labels = labels
        self._calls: dict[CallKey, CallTotal] = {}
        self._tally: Counter[tuple[CallKey, datetime]] = Counter()
        self._events: Counter[EventKey] = Counter()

    def count_calls(self, calls: Sequence[Call]) -> None:
        """Adds new calls, given in the order of their time."""
        alike: defaultdict[Any, list[Call]] = defaultdict(list)
        for call in calls:
            alike[_ALIKE(call)].append(call)
        for (service, environment, tool, outcome, code), same in alike.items():
            name = self._labels.name(TOOL, service, environment, tool)
            key = (*name, outcome, code or _NO_CODE[outcome])
            self._count_hours(key, same)
            if in_time := self._without_late(same):
                self._calls.setdefault(key, CallTotal()).add(in_time)

    def _count_hours(self, key: CallKey, calls: Sequence[Call]) -> None:
        first, last = hour_of(seen_at(calls[0])), hour_of(seen_at(calls[-1]))
        if first == last and calls[0].told_at is None:  # undated calls would be the first
            self._tally[key, first] += len(calls)
        else:
            self._tally.update((key, hour_of(seen_at(call))) for call in calls)

    def _without_late(self, calls: list[Call]) -> list[Call]:
        """Late calls go to a count of their own, so that they page nobody."""
        oldest = calls[0]
        if not self._imports and oldest.told_at is None:
            newest = max(map(_RECEIVED_AT, calls))
            if newest - oldest.started_at <= LATE:
                return calls
        in_time = [call for call in calls if not self.is_late(call)]
        if late := len(calls) - len(in_time):
            name = self._labels.name(SERVICE, oldest.service, oldest.environment, oldest.tool)
            self._events[EventKey(conventions.LATE_CALLS, *name)] += late
        return in_time

    def is_late(self, call: Call) -> bool:
        """Whether the call came more than ten minutes after it ended, or is imported."""
        waited = call.received_at - (call.told_at or call.started_at)
        return self._imports or (
            waited > LATE and waited > LATE + timedelta(microseconds=call.duration_us)
        )

    def count_events(self, events: Sequence[Event]) -> None:
        """Adds new run events."""
        for event in events:
            if event.event_name == conventions.TOOL_DECLARED:
                self._start_series(event)
            elif not self._imports and (found := EVENT_METRICS.get(event.event_name)) is not None:
                self._count_event(event, *found)

    def _count_event(self, event: Event, metric: str, kind: str) -> None:
        place = self._labels.name(kind, event.service, event.environment, event.label)
        dropped = metric == conventions.TELEMETRY_DROPPED_TOTAL
        self._events[EventKey(metric, *place)] += (event.amount or 0) if dropped else 1
        if kind == MODEL:
            self._events[EventKey(conventions.MODEL_ATTEMPTS, *place)] += event.amount or 1
            self._events[EventKey(conventions.MODEL_ERRORS, *place)] += (
                event.outcome in _MODEL_FAILURES
            )
            self._events[EventKey(conventions.MODEL_RETRIES_EXHAUSTED, *place)] += (
                event.outcome == _EXHAUSTED
            )

    def _start_series(self, event: Event) -> None:
        """Series of a declared tool start at 0: its first error is then a rise."""
        place = self._labels.name(TOOL, event.service, event.environment, event.label)
        for pair in PAIRS:
            self._calls.setdefault((*place, *pair), CallTotal())

    def count_group(self, first: Call) -> None:
        """Adds a new error group, unless it is old news."""
        if not self.is_late(first):
            service, environment, tool = self._labels.name(
                TOOL, first.service, first.environment, first.tool
            )
            label = f"{tool} {first.code}"
            self._events[EventKey(conventions.ERROR_GROUPS_NEW, service, environment, label)] += 1

    def write(self, stage: Stage) -> None:
        """Writes the sums, last in the transaction and each in the order of its key."""
        slot = self.slot
        if self._tally:
            rows = sorted(self._tally.items())
            stage.add("call_tally", [(hour, calls, slot, *key) for (key, hour), calls in rows])
        if self._calls:
            stage.add(
                "call_total",
                [total.row(key, slot) for key, total in sorted(self._calls.items(), key=_key)],
            )
        if events := sorted((key, amount) for key, amount in self._events.items() if amount):
            stage.add("event_total", [(amount, slot, *key) for key, amount in events])


def _key(item: tuple[CallKey, CallTotal]) -> CallKey:
    return item[0]


def seen_at(call: Call) -> datetime:
    """When a call is said to have happened; of an absurd time the arrival."""
    return call.started_at if call.told_at is None else call.received_at


def hour_of(at: datetime) -> datetime:
    """The hour a time is in."""
    return at.replace(minute=0, second=0, microsecond=0)
