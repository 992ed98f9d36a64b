"""Services that do not answer as this one does, and texts that are hard to send."""

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from tests.browser.site import served
from tests.web.conftest import call

from toolfault.store.write import Writer

LETTER = "0123456789abcdef0123456789abcdef"
PROBLEM = {"type": "about:blank", "title": "Not Found", "status": 404, "detail": "Nothing is here."}


@contextmanager
def answering(status, body):
    """The address of a server that says the same to everybody, and the paths it was asked for."""
    paths = []

    class Same(BaseHTTPRequestHandler):
        def do_GET(self):
            paths.append(self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815 - the name the base class calls

        def log_message(self, *_):
            """The paths are kept instead."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Same) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", paths
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("as_json", [(), ("--json",)])
@pytest.mark.parametrize("command", [("lookup", "938N-KRKA-S18P"), ("errors",), ("groups",)])
@pytest.mark.parametrize(("status", "body"), [(404, PROBLEM), (200, {}), (200, {"state": "found"})])
def test_a_body_that_is_no_answer_is_a_sentence(toolfault, status, body, command, as_json):
    with answering(status, json.dumps(body).encode()) as (url, _):
        told = toolfault(*command, *as_json, "--url", url)

    assert told == (
        1,
        "",
        f"toolfault: {url} gave no answer to this question. Check --url or TOOLFAULT_URL, and that "
        "the service is of this command's version: toolfault --version\n",
    )


def test_a_dead_letter_is_not_acknowledged_by_a_server_that_does_not_know_the_address(toolfault):
    with answering(404, b'{"detail": "Not Found"}') as (url, _):
        told = toolfault("dead-letters", "ack", LETTER, "--url", url)

    assert told == (1, "", f"toolfault: No dead letter waits under {LETTER}.\n")


def test_a_text_of_several_lines_is_sent_as_one(toolfault):
    with answering(404, b"{}") as (url, paths):
        toolfault("lookup", "It failed.\r\n(ref  6MVV-59XX-H18P)\n\tThanks", "--json", "--url", url)

    assert paths == ["/api/v1/references/It%20failed.%20%28ref%206MVV-59XX-H18P%29%20Thanks"]


def test_a_reference_is_found_in_a_text_of_several_lines(database_url, toolfault):
    stored, writer = call(), Writer.open(database_url)
    writer.load([stored])
    writer.close()
    with served(database_url) as url:
        code, out, _ = toolfault(
            "lookup", f"It failed.\n(ref {stored.reference_id})\nThanks", "--url", url
        )

    assert code == 0
    assert stored.reference_id in out
