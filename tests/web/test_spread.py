"""How long a tool's calls take, and whether repeating them helps."""

from toolfault.store.queries.tools import Spread
from toolfault.web.spread import Took, Tried, whole


def spread(outcome, *, durations=(), attempts=(), tries=0):
    """Counts by the number of their bucket."""
    buckets = [0] * 15, [0] * 8
    for histogram, counts in zip(buckets, (durations, attempts), strict=True):
        for bucket, calls in counts:
            histogram[bucket] = calls
    return Spread(outcome, tries, *buckets)


def test_attempts_are_told_with_how_many_ended_well():
    found = whole([
        spread("ok", durations=[(0, 10)], attempts=[(1, 8), (2, 2)], tries=12),
        spread("failed", durations=[(0, 4)], attempts=[(1, 1), (4, 3)], tries=13),
        spread("failed", durations=[(0, 1)], attempts=[(0, 1)]),
    ])  # fmt: skip

    assert found.tried == (
        Tried("0, stopped before", 1, 0),
        Tried("1", 9, 8),
        Tried("2", 2, 2),
        Tried("4 to 5", 3, 0),
    )
    assert (found.calls, found.rescued, found.lost) == (15, 2, 3)
    assert found.attempts == 25 / 15


def test_durations_are_read_as_if_calls_lay_evenly_in_their_bucket():
    # buckets end at 10, 20, 40 ms and so on
    found = whole([spread("ok", durations=[(1, 50), (2, 50)], attempts=[(1, 100)])])

    # the 50th call ends the second bucket; the 95th is 45/50 and the 99th 49/50 into 20 to 40 ms
    assert found.ok == Took(100, 0.02, 0.038, 0.0396)
    assert found.not_ok is None
    assert found.durations == (("20 ms", {"ok": 50}), ("40 ms", {"ok": 50}))


def test_a_call_longer_than_every_bucket_is_told_by_where_the_last_one_begins():
    found = whole([spread("timed_out", durations=[(14, 1)], attempts=[(1, 1)])])

    assert found.not_ok == Took(1, 81.92, 81.92, 81.92)
    assert found.durations == (("longer", {"timed_out": 1}),)


def test_a_cancelled_call_says_nothing_about_how_long_failing_takes():
    found = whole([spread("cancelled", durations=[(9, 5)], attempts=[(1, 5)])])

    assert (found.ok, found.not_ok) == (None, None)


def test_a_tool_that_is_not_counted_has_no_histograms():
    assert whole([]) is None
    assert whole([spread("ok")]) is None
