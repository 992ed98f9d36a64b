"""Asks a running service's API."""

from __future__ import annotations

import http.client
import json
import ssl
import urllib.error
import urllib.request
from typing import Any, Protocol
from urllib.parse import quote, urlencode

_SECONDS = 10
_NOT_FOUND = 404
_NOT_ACCEPTED = 422
_ANSWER = (
    "reference", "state", "title", "explanation", "next_step", "suggestions", "matches", "others",
)  # fmt: skip
TRUST = "Set SSL_CERT_FILE to the file of the authority that signed it, and use the name it was made for."


class ServiceError(Exception):
    """The service gave no usable answer; says what to do."""


class Service(Protocol):
    """Where a service is, and the token it is shown."""

    @property
    def url(self) -> str:
        """Its address."""

    @property
    def token(self) -> str | None:
        """The token, or None."""


def look_up(where: Service, reference: str) -> dict[str, Any]:
    """The API's answer for one reference, or for the text it stands in; found or not.

    Raises:
        ServiceError: what came is no such answer.
    """
    one_line = " ".join(reference.split())  # an address with line breaks is not routed everywhere
    asked = quote(one_line.encode("utf-8", "replace"), safe="")
    return _with(_asked(where, f"/api/v1/references/{asked}"), where, *_ANSWER)


def page(where: Service, path: str, **filters: str | int | None) -> dict[str, Any]:
    """The newest items of one list of the API, narrowed to what is given.

    Raises:
        ServiceError: what came is no list.
    """
    given = {name: value for name, value in filters.items() if value is not None}
    asked = urlencode(given, errors="replace")
    return _with(_asked(where, f"/api/v1/{path}?{asked}"), where, "items")


def dead_letter(where: Service, letter: str) -> dict[str, Any]:
    """One dead letter with its payload.

    Raises:
        ServiceError: also where there is no such letter.
    """
    found = _asked(where, f"/api/v1/dead-letters/{quote(letter, safe='')}")
    if "id" not in found:
        raise ServiceError(f"There is no dead letter {letter} that this token may see.")
    return found


def acknowledge(where: Service, letter: str) -> bool:
    """Take a dead letter off the waiting list; False where none waits under that id."""
    answer = _asked(where, f"/api/v1/dead-letters/{quote(letter, safe='')}/ack", method="POST")
    return not answer  # a refusal has a body


def _asked(where: Service, path: str, method: str = "GET") -> dict[str, Any]:
    url = where.url + path
    request = urllib.request.Request(url, method=method)  # noqa: S310 - http(s) alone is accepted
    if where.token:
        request.add_header("Authorization", f"Bearer {where.token}")
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as response:  # noqa: S310
            return _decoded(response.read() or b"{}", where.url)
    except urllib.error.HTTPError as error:
        with error:
            if error.code == _NOT_FOUND:
                return _decoded(error.read(), where.url)
            raise ServiceError(_refusal(where.url, error)) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        if problem := untrusted(error):
            raise ServiceError(
                f"The certificate of {where.url} is not trusted: {problem}. {TRUST}"
            ) from None
        raise ServiceError(
            f"No service answers at {where.url}. Start one with `toolfault up`, or say where it "
            "is with --url or TOOLFAULT_URL."
        ) from None


def untrusted(error: Exception) -> str | None:
    """What is wrong with the certificate, where a request failed for that."""
    reason = getattr(error, "reason", None)
    return reason.verify_message if isinstance(reason, ssl.SSLCertVerificationError) else None


def _refusal(url: str, error: urllib.error.HTTPError) -> str:
    if error.code in (401, 403):
        return f"{url} asks for a token that may do this. Set TOOLFAULT_TOKEN."
    if error.code == _NOT_ACCEPTED:
        wrong = _decoded(error.read(), url).get("errors") or [{}]
        return f"A filter is not accepted: {wrong[0].get('field')}. {wrong[0].get('problem')}"
    return f"{url} answered {error.code}. Its log says why; {url}/readyz says whether it is ready."


def _with(answer: dict[str, Any], where: Service, *parts: str) -> dict[str, Any]:
    """The answer, where it has these parts: a refusal, or another program's JSON, has not."""
    if not answer.keys() >= set(parts):
        raise ServiceError(
            f"{where.url} gave no answer to this question. Check --url or TOOLFAULT_URL, and that "
            "the service is of this command's version: toolfault --version"
        )
    return answer


def _decoded(body: bytes, url: str) -> dict[str, Any]:
    try:
        answer = json.loads(body)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise ServiceError(f"What answers at {url} is not toolfault. Check --url or TOOLFAULT_URL.")
    return answer
