"""Where other machines reach the ports, only a token with the role ingest may send."""

import pytest

from toolfault.ingest.errors import NotAllowedError, UnauthenticatedError
from toolfault.senders import Senders
from toolfault.store.queries.base import open_engine
from toolfault.store.tokens import Role, create_token, revoke_token


@pytest.fixture
def engine(database_url):
    engine = open_engine(database_url)
    yield engine
    engine.dispose()


async def test_a_token_with_the_role_ingest_is_known_by_its_name(engine):
    _, secret = create_token(engine, "agents", [Role.INGEST])

    assert await Senders(engine).authorize(f"Bearer {secret}") == "agents"
    assert await Senders(engine).authorize(f"bearer  {secret} ") == "agents"


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer nonsense", "Basic dXNlcjpwYXNz"])
async def test_without_a_token_of_ours_nobody_sends(engine, header):
    with pytest.raises(UnauthenticatedError):
        await Senders(engine).authorize(header)


async def test_a_token_with_another_role_may_not_send(engine):
    _, secret = create_token(engine, "desk", [Role.SUPPORT])

    with pytest.raises(NotAllowedError, match="the token desk does not have the role ingest"):
        await Senders(engine).authorize(f"Bearer {secret}")


async def test_a_revoked_token_is_refused(engine):
    token, secret = create_token(engine, "agents", [Role.INGEST])
    revoke_token(engine, token.id)

    with pytest.raises(UnauthenticatedError):
        await Senders(engine).authorize(f"Bearer {secret}")


async def test_a_token_is_asked_for_once_in_half_a_minute(engine):
    _, secret = create_token(engine, "agents", [Role.INGEST])
    senders = Senders(engine)
    await senders.authorize(f"Bearer {secret}")

    engine.dispose()
    engine.pool._creator = None  # any further question would fail

    assert await senders.authorize(f"Bearer {secret}") == "agents"
