"""Asks the service itself: whether it is ready, what time it has, and for the sample."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, NamedTuple

from toolfault import client
from toolfault.check import sample
from toolfault.check.step import CheckError

if TYPE_CHECKING:
    from email.message import Message

_SECONDS = 10.0
_MOST_SKEW = timedelta(minutes=1)
_LOOK_SECONDS = 20.0  # a Collector's batches are on their way for a second or two
_PAUSE = 0.2
_ADDRESS = "TOOLFAULT_URL or --url"


class Readiness(NamedTuple):
    """The answer of /readyz."""

    told: str
    skew: timedelta | None  # of this machine's clock, to the second; None where it has no date


def ready(where: client.Service) -> Readiness:
    """Whether the service says that it can serve.

    Raises:
        CheckError: it does not, or nobody does.
    """
    request = urllib.request.Request(f"{where.url}/readyz")  # noqa: S310 - http(s) alone is accepted
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310
            if b'"ready"' not in answer.read():
                raise _not_toolfault(where)
            return Readiness(f"{where.url} is ready.", _skew(answer.headers))
    except urllib.error.HTTPError as error:
        with error:
            reason = error.read().decode("utf-8", "replace")
        if error.code != 503 or "reason" not in reason:
            raise _not_toolfault(where) from None
        raise CheckError(
            f"{where.url} is not ready: {reason}",
            "Bring back what it misses (as a rule its database); it recovers by itself.",
        ) from None
    except OSError as error:
        if problem := client.untrusted(error):
            raise CheckError(
                f"The certificate of {where.url} is not trusted: {problem}.", client.TRUST
            ) from None
        raise CheckError(
            f"No service answers at {where.url}.",
            f"Start it with `toolfault up`, or say where it is with {_ADDRESS}.",
        ) from None


def _not_toolfault(where: client.Service) -> CheckError:
    return CheckError(f"What answers at {where.url} is not toolfault.", f"Correct {_ADDRESS}.")


def _skew(headers: Message) -> timedelta | None:
    try:
        return datetime.now(UTC) - parsedate_to_datetime(headers["date"])
    except (TypeError, ValueError):
        return None


def clock(skew: timedelta) -> str:
    """Whether this machine's clock agrees with the service's.

    Raises:
        CheckError: it is off by more than a minute.
    """
    seconds = round(skew.total_seconds())
    if abs(skew) <= _MOST_SKEW:
        return "This machine's clock agrees with the service's."
    way = "ahead of" if seconds > 0 else "behind"
    raise CheckError(
        f"This machine's clock is {abs(seconds)} s {way} the service's.",
        "Set both by NTP: calls that seem older than 10 minutes are stored, and page nobody.",
    )


def look_up(where: client.Service, reference: str) -> str:
    """Find the sample by its reference.

    Raises:
        CheckError: it is not there, or not for this token.
    """
    until = time.monotonic() + _LOOK_SECONDS
    while True:
        try:
            found = client.look_up(where, reference)
        except client.ServiceError as error:
            raise CheckError(
                str(error), "A token with the role support may look references up."
            ) from None
        if found.get("matches"):
            return f"{reference} is found: {where.url}/r/{reference}"
        if time.monotonic() > until:
            raise CheckError(
                f"{reference} was taken, but is not found after {_LOOK_SECONDS:g} s.",
                f"See that the endpoint leads to {where.url}: a Collector's log says what it cannot "
                f"deliver. A token that is limited to services does not see {sample.SERVICE}.",
            )
        time.sleep(_PAUSE)
