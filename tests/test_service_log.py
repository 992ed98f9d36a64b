"""The service's own log is one line a record, and holds no secret."""

import logging
import sys

from toolfault.service_log import OneLine


def _record(message, exc_info=None):
    record = logging.LogRecord("toolfault.server", logging.WARNING, "", 0, message, (), exc_info)
    record.created = 0.5
    return record


def test_a_record_is_one_line_with_its_parts_named():
    assert OneLine().format(_record("a\nb")) == (
        'time=1970-01-01T00:00:00.500+00:00 level=warning logger=toolfault.server message="a\\nb"'
    )


def test_a_traceback_stays_on_the_line():
    try:
        raise ValueError("wrong")
    except ValueError:
        line = OneLine().format(_record("it failed", sys.exc_info()))

    assert "\n" not in line
    assert line.endswith('ValueError: wrong"')


def test_a_secret_in_a_message_is_hidden():
    line = OneLine().format(_record("password=" + "hunter2"))

    assert "hunter2" not in line
