"""Times as people give them, as the API takes them."""

from datetime import UTC, datetime, timedelta

import pytest

from toolfault.cli.times import moment
from toolfault.settings import SettingError


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ("2026-11-30", "2026-11-30T00:00:00+00:00"),
        ("2026-11-30T14:00:00Z", "2026-11-30T14:00:00+00:00"),
        ("2026-11-30T14:00:00+01:00", "2026-11-30T14:00:00+01:00"),
        (" 2026-11-30 14:00Z ", "2026-11-30T14:00:00+00:00"),
    ],
)
def test_a_day_begins_in_utc_and_a_time_keeps_its_zone(given, asked):
    assert moment(given) == asked


@pytest.mark.parametrize(
    ("given", "age"),
    [
        ("90s", timedelta(seconds=90)),
        ("30m", timedelta(minutes=30)),
        ("2h", timedelta(hours=2)),
        ("7d", timedelta(days=7)),
        ("1w", timedelta(days=7)),
    ],
)
def test_an_age_counts_back_from_now(given, age):
    before = datetime.now(UTC)
    found = datetime.fromisoformat(moment(given))

    assert before - age <= found <= datetime.now(UTC) - age


@pytest.mark.parametrize(
    "given", ["", "yesterday", "2", "2y", "-2h", "999999w", "2026-11-31", "2026-11-30T14:00", "٣h"]
)
def test_anything_else_is_told_what_a_time_looks_like(given):
    with pytest.raises(SettingError) as refused:
        moment(given)

    assert str(refused.value) == (
        f"{given!r} is not a time. Give an age such as 30m, 2h or 7d, a day such as 2026-11-30 "
        "(from 0:00 UTC), or 2026-11-30T14:00:00Z."
    )
