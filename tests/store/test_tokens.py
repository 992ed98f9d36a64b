"""Tokens: shown once, kept as a hash."""

import pytest

from toolfault.store.queries.base import open_engine
from toolfault.store.tokens import (
    Role,
    create_token,
    has_tokens,
    list_tokens,
    revoke_token,
    verify_token,
)


@pytest.fixture
def engine(database_url):
    engine = open_engine(database_url)
    yield engine
    engine.dispose()


def test_a_token_lives_from_its_making_to_its_end(engine, connection):
    assert not has_tokens(engine)
    made, secret = create_token(
        engine, "support desk", [Role.SUPPORT, Role.SCRAPE], ["calendar-agent"]
    )
    assert verify_token(engine, secret) == made
    assert (made.roles, made.services) == (["scrape", "support"], ["calendar-agent"])
    assert list_tokens(engine) == [made]
    assert has_tokens(engine)

    kept = connection.execute("SELECT to_jsonb(api_token)::text FROM api_token").fetchone()[0]
    assert secret not in kept
    assert secret.rpartition("_")[2] not in kept

    for wrong in (
        secret + "x",
        secret[:-1],
        secret.replace("tft_", "tfx_"),
        "",
        "tft",
        "tft_zz_y",
        "tft_" + "0" * 32 + "_",
        "é",
    ):
        assert verify_token(engine, wrong) is None, wrong

    other, other_secret = create_token(engine, "other", [Role.ADMIN])
    mixed = "_".join([*secret.split("_", 2)[:2], other_secret.split("_", 2)[2]])
    assert verify_token(engine, mixed) is None

    assert revoke_token(engine, made.id)
    assert not revoke_token(engine, made.id)
    assert verify_token(engine, secret) is None
    assert verify_token(engine, other_secret) == other
    assert [token.revoked_at is None for token in list_tokens(engine)] == [False, True]
