"""Who may send telemetry where the ports are open to other machines."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

from toolfault.ingest.errors import NotAllowedError, UnauthenticatedError
from toolfault.store.tokens import Role, verify_token

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from toolfault.store.tokens import Token

_REMEMBERED_SECONDS = 30.0  # a revoked token is refused after this at the latest
_REMEMBERED = 1000


class Senders:
    """Checks tokens, and asks the store about the same one only every half minute."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._seen: OrderedDict[bytes, tuple[float, Token | None]] = OrderedDict()

    async def authorize(self, header: str) -> str:
        """The name of the token in an Authorization header.

        Raises:
            UnauthenticatedError: there is none, or not one of ours.
            NotAllowedError: it may not send.
        """
        kind, _, secret = header.partition(" ")
        token = await self._token(secret.strip()) if kind.lower() == "bearer" else None
        if token is None:
            raise UnauthenticatedError("send a token as `Authorization: Bearer TOKEN`")
        if Role.INGEST not in token.roles:
            raise NotAllowedError(f"the token {token.name} does not have the role ingest")
        return token.name

    async def _token(self, secret: str) -> Token | None:
        key, now = hashlib.sha256(secret.encode()).digest(), time.monotonic()
        asked, token = self._seen.get(key, (-_REMEMBERED_SECONDS, None))
        if now - asked >= _REMEMBERED_SECONDS:
            token = await asyncio.to_thread(verify_token, self._engine, secret)
            self._seen[key] = now, token
            self._seen.move_to_end(key)
            while len(self._seen) > _REMEMBERED:
                self._seen.popitem(last=False)
        return token
