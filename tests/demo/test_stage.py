"""The demo's stage: whoever plays on it leaves when the demo ends."""

from toolfault.demo import stage


def test_an_agent_that_nobody_listens_to_any_more_ends_without_a_traceback(capfd):
    said = stage._agent("http://127.0.0.1:1", lambda _: None)
    assert next(said)["tool"] == "book_meeting"

    said.close()

    assert "Traceback" not in capfd.readouterr().err
