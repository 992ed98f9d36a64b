"""Asks a running service's API."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

if TYPE_CHECKING:
    from toolfault.settings import Settings

_SECONDS = 10
_NOT_FOUND = 404
_NOT_ACCEPTED = 422


class ServiceError(Exception):
    """The service gave no usable answer; says what to do."""


def look_up(settings: Settings, reference: str) -> dict[str, Any]:
    """The API's answer for one reference, found or not."""
    return _get(settings, f"/api/v1/references/{quote(reference, safe='')}")


def page(settings: Settings, path: str, **filters: str | int | None) -> dict[str, Any]:
    """The newest items of one list of the API, narrowed to what is given."""
    asked = urlencode({name: value for name, value in filters.items() if value is not None})
    return _get(settings, f"/api/v1/{path}?{asked}")


def _get(settings: Settings, path: str) -> dict[str, Any]:
    request = urllib.request.Request(settings.url + path)  # noqa: S310 - settings accept http(s) alone
    if settings.token:
        request.add_header("Authorization", f"Bearer {settings.token}")
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as response:  # noqa: S310
            return _decoded(response.read(), settings.url)
    except urllib.error.HTTPError as error:
        with error:
            if error.code == _NOT_FOUND:
                return _decoded(error.read(), settings.url)
            raise ServiceError(_refusal(settings.url, error)) from None
    except (urllib.error.URLError, OSError):
        raise ServiceError(
            f"No service answers at {settings.url}. Start one with `toolfault up`, or say where it "
            "is with --url or TOOLFAULT_URL."
        ) from None


def _refusal(url: str, error: urllib.error.HTTPError) -> str:
    if error.code in (401, 403):
        return f"{url} asks for a token that may do this. Set TOOLFAULT_TOKEN."
    if error.code == _NOT_ACCEPTED:
        wrong = _decoded(error.read(), url).get("errors") or [{}]
        return f"A filter is not accepted: {wrong[0].get('field')}: {wrong[0].get('problem')}."
    return f"{url} answered {error.code}. Its log says why; {url}/readyz says whether it is ready."


def _decoded(body: bytes, url: str) -> dict[str, Any]:
    try:
        answer = json.loads(body)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise ServiceError(f"What answers at {url} is not toolfault. Check --url or TOOLFAULT_URL.")
    return answer
