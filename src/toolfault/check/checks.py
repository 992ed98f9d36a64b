"""All checks in their order; what cannot be tried after a failure is skipped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolfault import reference
from toolfault.check import delivery, sample, service
from toolfault.check.step import FAILED, OK, SKIPPED, CheckError, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from toolfault import client
    from toolfault.check.endpoint import Endpoint

_NOT_TRIED = "Not tried."


def steps(to: Endpoint, where: client.Service) -> Iterator[Step]:
    """Check the endpoint, then the service, then that the one leads to the other."""
    given = reference.new()
    failed: set[str] = set()
    for name, check in _sending(to, given):
        step = Step(name, SKIPPED, _NOT_TRIED) if failed else _tried(name, check)
        failed |= {name} if step.state == FAILED else set()
        yield step
    for step in _of_the_service(where):
        failed |= {"ready"} if (step.name, step.state) == ("ready", FAILED) else set()
        yield step
    if failed:
        yield Step("look-up", SKIPPED, _NOT_TRIED)
    else:
        yield _tried("look-up", lambda: service.look_up(where, given))


def _sending(to: Endpoint, given: str) -> Iterator[tuple[str, Callable[[], str]]]:
    yield "address", lambda: delivery.connect(to)
    if to.is_tls:
        yield "TLS", lambda: delivery.shake_hands(to)
    yield "telemetry", lambda: delivery.send(to, sample.request(given))


def _of_the_service(where: client.Service) -> Iterator[Step]:
    try:
        readiness = service.ready(where)
    except CheckError as error:
        yield Step("ready", FAILED, error.told, error.next_step)
        yield Step("clock", SKIPPED, _NOT_TRIED)
        return
    yield Step("ready", OK, readiness.told)
    if (skew := readiness.skew) is None:
        yield Step("clock", SKIPPED, "The service's answer has no date.")
    else:
        yield _tried("clock", lambda: service.clock(skew))


def _tried(name: str, check: Callable[[], str]) -> Step:
    try:
        return Step(name, OK, check())
    except CheckError as error:
        return Step(name, FAILED, error.told, error.next_step)
