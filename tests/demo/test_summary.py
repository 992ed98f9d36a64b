"""The demo on the screen says what it shows, and what is different outside of it."""

import io

from rich.console import Console

from toolfault.demo.summary import Summary


def test_an_alert_of_the_demo_is_said_to_have_limits_of_its_own():
    screen = io.StringIO()
    Summary(Console(file=screen)).alerted(
        {"name": "ToolfaultInternalErrorSpike", "summary": "A tool crashes."}, heard=True
    )
    assert screen.getvalue() == (
        "Alert ToolfaultInternalErrorSpike: A tool crashes.\n"
        "It is on the card and ends by itself. The demo looks back over seconds and is told by "
        "one crash; the shipped limits, which /runbooks shows, ask for more.\n"
    )
