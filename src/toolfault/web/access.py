"""Who asks, what they may do, and the limits on guessing."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.requests import Request

from toolfault.store.tokens import Role, verify_token
from toolfault.web.lookup import Viewer
from toolfault.web.problems import ProblemError

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from sqlalchemy import Engine

SESSION_COOKIE = "toolfault_session"
#: What each role may do besides its own.
_INCLUDES = {
    Role.ADMIN: frozenset({Role.ADMIN, Role.ENGINEER, Role.SUPPORT, Role.SCRAPE}),
    Role.ENGINEER: frozenset({Role.ENGINEER, Role.SUPPORT}),
    Role.SUPPORT: frozenset({Role.SUPPORT}),
    Role.SCRAPE: frozenset({Role.SCRAPE}),
    Role.INGEST: frozenset({Role.INGEST}),
}


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks."""

    name: str
    roles: frozenset[Role]
    services: frozenset[str] | None = None
    token_id: UUID | None = None

    def may(self, role: Role) -> bool:
        """Whether this role was granted."""
        return role in self.roles

    @property
    def viewer(self) -> Viewer:
        """What they may see of a card."""
        return Viewer(self.services, self.may(Role.ENGINEER))


#: On loopback without tokens everybody may do everything.
LOCAL = Principal("local", frozenset(Role))


class Limit:
    """At most so many events a minute for each caller; a bounded memory of callers."""

    def __init__(
        self,
        per_minute: int,
        callers: int = 10_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._per_minute, self._callers, self._clock = per_minute, callers, clock
        self._seen: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, caller: str) -> float:
        """Seconds until this caller may go on; 0 is now."""
        missing = 1.0 - self._room(caller)
        return max(missing * 60.0 / self._per_minute, 0.0)

    def count(self, caller: str) -> None:
        """One more event of this caller."""
        self._seen[caller] = (self._room(caller) - 1.0, self._clock())
        self._seen.move_to_end(caller)
        while len(self._seen) > self._callers:
            self._seen.popitem(last=False)

    def _room(self, caller: str) -> float:
        room, at = self._seen.get(caller, (float(self._per_minute), 0.0))
        refilled = room + (self._clock() - at) * self._per_minute / 60.0
        return min(refilled, float(self._per_minute))


class Doorkeeper:
    """Turns a request into a principal, or refuses it."""

    def __init__(self, engine: Engine, *, is_open: bool) -> None:
        self._engine, self._is_open = engine, is_open
        #: Look-ups of what is not there, and tokens that are none.
        self.misses = Limit(per_minute=60)
        self.wrong_tokens = Limit(per_minute=10)

    def admit(self, request: Request, role: Role) -> Principal:
        """The caller, if it has the role.

        Raises:
            ProblemError: 401 without a valid token, 403 without the role, 429 after too many guesses.
        """
        principal = self.identify(request)
        if principal is None:
            raise ProblemError(401, "Sign in, or send a token as `Authorization: Bearer TOKEN`.")
        if not principal.may(role):
            raise ProblemError(
                403, f"This needs the role {role}; the token {principal.name} does not have it."
            )
        return principal

    def identify(self, request: Request) -> Principal | None:
        """Whoever the request's token or session says, or nobody."""
        if self._is_open:
            return LOCAL
        secret = bearer(request) or request.cookies.get(SESSION_COOKIE)
        return self.verify(request, secret) if secret else None

    def verify(self, request: Request, secret: str) -> Principal | None:
        """Whose secret it is; too many wrong ones from one address are slowed down."""
        self.refuse_beyond(self.wrong_tokens, address(request))
        token = verify_token(self._engine, secret)
        if token is None:
            self.wrong_tokens.count(address(request))
            return None
        known = [Role(role) for role in token.roles if role in set(Role)]
        granted = frozenset().union(*(_INCLUDES[role] for role in known))
        services = None if token.services is None else frozenset(token.services)
        return Principal(token.name, granted, services, token.id)

    def refuse_beyond(self, limit: Limit, caller: str) -> None:
        """Refuses a caller that reached a limit.

        Raises:
            ProblemError: 429 with the seconds to wait.
        """
        if (seconds := limit.wait(caller)) > 0:
            raise ProblemError(
                429, "Too many attempts; wait a moment.", retry_after=int(seconds) + 1
            )


def bearer(request: Request) -> str | None:
    """The token in the Authorization header."""
    kind, _, secret = request.headers.get("authorization", "").partition(" ")
    return secret.strip() if kind.lower() == "bearer" and secret.strip() else None


def address(request: Request) -> str:
    """The address a request comes from."""
    return request.client.host if request.client else "unknown"
