"""PostgreSQL and SQLite, also through SQLAlchemy, and Redis: real servers and a stub that breaks."""

import asyncio
import contextlib
import sqlite3
import threading

import psycopg
import pytest
import redis
import redis.asyncio
import sqlalchemy
from psycopg import errors
from psycopg.conninfo import make_conninfo

# outcome, code, transient, retry_after, effect of a tool that writes
NEVER_SENT = ROLLED_BACK = BUSY = ("failed", "UNAVAILABLE", True, None, "none")
BROKEN = ("failed", "UNAVAILABLE", False, None, "unknown")
NOT_HERE = ("failed", "UNAVAILABLE", False, None, "none")
TIMED_OUT = ("timed_out", "UNAVAILABLE", False, None, "unknown")
CONFLICT = ("failed", "CONFLICT", False, None, "none")
DENIED = ("failed", "PERMISSION_DENIED", False, None, "none")
BUG = ("failed", "INTERNAL", False, None, "unknown")


def caught(send, *arguments):
    with pytest.raises(Exception) as failure:  # noqa: PT011 - whichever the client raises
        send(*arguments)
    return failure.value


@pytest.fixture(scope="module")
def booking(postgres):
    """A database with rooms that may be booked once; the tests leave it as it is."""
    with psycopg.connect(postgres, autocommit=True) as conn:
        conn.execute("CREATE DATABASE booking")
    url = make_conninfo(postgres, dbname="booking")
    with psycopg.connect(url) as conn:
        conn.execute("CREATE TABLE room (id int PRIMARY KEY)")
        conn.execute(
            "CREATE TABLE booking (room int UNIQUE REFERENCES room, guests int CHECK (guests > 0))"
        )
        conn.execute("INSERT INTO room VALUES (1), (2)")
        conn.execute("INSERT INTO booking VALUES (1, 1)")
    yield url
    with psycopg.connect(postgres, autocommit=True) as conn:
        conn.execute("DROP DATABASE booking WITH (FORCE)")


STATEMENTS = {
    "INSERT INTO booking VALUES (1, 1)": CONFLICT,
    "INSERT INTO booking VALUES (3, 1)": CONFLICT,
    "INSERT INTO booking VALUES (2, 0)": BUG,
    "SELECT no_such_column FROM room": BUG,
    "SELECT 1/0": BUG,
    "SET LOCAL statement_timeout = 20; SELECT pg_sleep(5)": TIMED_OUT,
    "SELECT pg_terminate_backend(pg_backend_pid())": BROKEN,
    "SET LOCAL ROLE pg_monitor; SELECT * FROM room": DENIED,
}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_that_fails_in_psycopg(statement, booking, verdict):
    conn = psycopg.connect(booking)
    error = caught(conn.execute, statement)
    conn.close()

    assert verdict(error) == STATEMENTS[statement]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_that_fails_in_sqlalchemy(statement, booking, verdict):
    engine = engine_for(booking)
    with engine.connect() as conn:
        error = caught(conn.execute, sqlalchemy.text(statement))
    engine.dispose()

    assert isinstance(error, sqlalchemy.exc.DBAPIError)
    assert verdict(error) == STATEMENTS[statement]


def engine_for(address, **options):
    return sqlalchemy.create_engine(
        "postgresql+psycopg://", creator=lambda: psycopg.connect(address), **options
    )


def test_a_serialization_failure_was_rolled_back(booking, verdict):
    with psycopg.connect(booking) as one, psycopg.connect(booking) as other:
        for conn in (one, other):
            conn.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
            conn.execute("SELECT sum(guests) FROM booking")
        one.execute("UPDATE booking SET guests = 2")
        one.commit()
        error = caught(other.execute, "UPDATE booking SET guests = 3")
        other.rollback()

    assert type(error) is errors.SerializationFailure
    assert verdict(error) == ROLLED_BACK


def test_the_loser_of_a_deadlock_was_rolled_back(booking, verdict):
    lock = "SELECT FROM room WHERE id = %s FOR UPDATE"
    failed = []

    def second(conn):
        try:
            conn.execute(lock, [1])
        except psycopg.Error as error:
            failed.append(error)
        conn.rollback()

    with psycopg.connect(booking) as one, psycopg.connect(booking) as other:
        for conn, room in ((one, 1), (other, 2)):
            conn.execute("SET LOCAL deadlock_timeout = '20ms'")
            conn.execute(lock, [room])
        waiting = threading.Thread(target=second, args=(other,))
        waiting.start()
        try:
            one.execute(lock, [2])
        except psycopg.Error as error:
            failed.append(error)
        one.rollback()
        waiting.join()

    assert [type(error) for error in failed] == [errors.DeadlockDetected]
    assert verdict(failed[0]) == ROLLED_BACK


def test_a_lock_that_is_not_free(booking, verdict):
    with psycopg.connect(booking) as one, psycopg.connect(booking) as other:
        one.execute("SELECT FROM room WHERE id = 1 FOR UPDATE")
        error = caught(other.execute, "SELECT FROM room WHERE id = 1 FOR UPDATE NOWAIT")
        other.rollback()

    assert verdict(error) == ROLLED_BACK


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (errors.TooManyConnections(), BUSY),
        (errors.CannotConnectNow(), BUSY),
        (errors.SqlclientUnableToEstablishSqlconnection(), NEVER_SENT),
        (errors.SqlserverRejectedEstablishmentOfSqlconnection(), NOT_HERE),
        (errors.ConnectionFailure(), BROKEN),
        (errors.CrashShutdown(), BROKEN),
        (errors.DiskFull(), BROKEN),
        (errors.InvalidPassword(), DENIED),
        (errors.ConnectionTimeout(), NEVER_SENT),
        (errors.ExclusionViolation(), CONFLICT),
    ],
)
def test_sqlstates_that_are_hard_to_provoke(error, expected, verdict):
    assert verdict(error) == expected


def test_a_connection_that_is_already_closed_knows_no_effect(booking, verdict):
    conn = psycopg.connect(booking)
    conn.close()

    assert verdict(caught(conn.execute, "SELECT 1")) == BROKEN


# --- SQLite --------------------------------------------------------------------------------------

ROWS = {
    "INSERT INTO booking VALUES (1, 1)": CONFLICT,
    "INSERT INTO booking VALUES (2, 3)": CONFLICT,
    "INSERT INTO booking VALUES (NULL, NULL)": BUG,
    "SELECT no_such_column FROM booking": BUG,
}


@pytest.fixture
def file(tmp_path):
    """A database with one booked room, whose rooms need a floor that exists."""
    path = tmp_path / "booking.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as conn, conn:
        conn.execute("CREATE TABLE floor (id integer PRIMARY KEY)")
        conn.execute(
            "CREATE TABLE booking (room int PRIMARY KEY, floor int NOT NULL REFERENCES floor)"
        )
        conn.execute("INSERT INTO floor VALUES (1)")
        conn.execute("INSERT INTO booking VALUES (1, 1)")
    return path


@pytest.mark.parametrize("statement", ROWS)
def test_a_statement_that_fails_in_sqlite(statement, file, verdict):
    with contextlib.closing(sqlite3.connect(file)) as conn:
        conn.execute("PRAGMA foreign_keys = ON")
        assert verdict(caught(conn.execute, statement)) == ROWS[statement]


def test_a_locked_sqlite_file_under_sqlalchemy(file, verdict):
    engine = sqlalchemy.create_engine(f"sqlite:///{file}", connect_args={"timeout": 0})
    with contextlib.closing(sqlite3.connect(file)) as other, engine.connect() as conn:
        other.execute("BEGIN IMMEDIATE")
        error = caught(conn.execute, sqlalchemy.text("DELETE FROM booking"))
    engine.dispose()

    assert type(error) is sqlalchemy.exc.OperationalError
    assert verdict(error) == ROLLED_BACK


def test_a_sqlite_snapshot_that_another_writer_overtook(file, verdict):
    with contextlib.closing(sqlite3.connect(file, isolation_level=None, timeout=0)) as conn:
        conn.execute("PRAGMA journal_mode = WAL")
        conn.execute("BEGIN")
        conn.execute("SELECT count(*) FROM booking").fetchone()
        with contextlib.closing(sqlite3.connect(file)) as other, other:
            other.execute("DELETE FROM booking")
        error = caught(conn.execute, "DELETE FROM booking")

    assert error.sqlite_errorname == "SQLITE_BUSY_SNAPSHOT"
    assert verdict(error) == ROLLED_BACK


# --- connecting to PostgreSQL --------------------------------------------------------------------


def addresses(web, database_url):
    """What may be wrong with the address, the address and what it means."""
    return {
        "refused": (f"postgresql://u@127.0.0.1:{web.refused_port}/db", NEVER_SENT),
        "no such name": ("postgresql://u@booking.invalid/db", NEVER_SENT),
        "no such database": (make_conninfo(database_url, dbname="nowhere"), NOT_HERE),
        "no such role": (make_conninfo(database_url, user="nobody"), DENIED),
    }


WRONG = ["refused", "no such name", "no such database", "no such role"]


@pytest.mark.parametrize("what", WRONG)
def test_psycopg_does_not_connect(what, web, postgres, verdict):
    address, expected = addresses(web, postgres)[what]

    assert verdict(caught(psycopg.connect, address)) == expected


@pytest.mark.parametrize("what", WRONG)
def test_async_psycopg_does_not_connect(what, web, postgres, verdict):
    address, expected = addresses(web, postgres)[what]

    error = caught(lambda: asyncio.run(psycopg.AsyncConnection.connect(address)))

    assert verdict(error) == expected


@pytest.mark.parametrize("what", WRONG)
def test_sqlalchemy_does_not_connect(what, web, postgres, verdict):
    address, expected = addresses(web, postgres)[what]

    assert verdict(caught(engine_for(address).connect)) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b'FATAL\0C28P01\0Mpassword authentication failed for user "u"\0', DENIED),
        (b"FATAL\0C28000\0Mno pg_hba.conf entry for host\0", DENIED),
        (b"FATAL\0C53300\0Msorry, too many clients already\0", BUSY),
        (b"FATAL\0C57P03\0Mthe database system is starting up\0", BUSY),
    ],
)
def test_postgresql_turns_the_connection_away(answer, expected, stub, verdict):
    fields = b"S" + answer + b"\0"
    message = b"E" + (len(fields) + 4).to_bytes(4, "big") + fields
    address = f"postgresql://u@127.0.0.1:{stub(message)}/db?sslmode=disable"

    assert verdict(caught(psycopg.connect, address)) == expected


def test_no_free_connection_in_the_pool_of_sqlalchemy(postgres, verdict):
    engine = engine_for(postgres, pool_size=1, max_overflow=0, pool_timeout=0.1)
    with engine.connect():
        error = caught(engine.connect)
    engine.dispose()

    assert verdict(error) == NEVER_SENT


# --- Redis ---------------------------------------------------------------------------------------

ANSWERS = {
    b"-LOADING Redis is loading the dataset in memory\r\n": BUSY,
    b"-TRYAGAIN Multiple keys request during rehashing of slot\r\n": BUSY,
    b"-CLUSTERDOWN The cluster is down\r\n": BUSY,
    b"-ERR max number of clients reached\r\n": BUSY,
    b"-READONLY You can't write against a read only replica.\r\n": NOT_HERE,
    b"-OOM command not allowed when used memory > 'maxmemory'.\r\n": NOT_HERE,
    b"-NOAUTH Authentication required.\r\n": DENIED,
    b"-WRONGPASS invalid username-password pair\r\n": DENIED,
    b"-NOPERM this user has no permissions\r\n": DENIED,
    b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n": BUG,
    b"": BROKEN,
    b"$100\r\ntoo little": BROKEN,
    None: TIMED_OUT,
}
OPTIONS = {
    "protocol": 2,
    "socket_timeout": 0.15,
    "socket_connect_timeout": 0.15,
    "driver_info": None,
}


def with_redis(host, port):
    with redis.Redis(host, port, retry=None, **OPTIONS) as client:
        client.set("room", "1")


def with_async_redis(host, port):
    async def send():
        async with redis.asyncio.Redis(host=host, port=port, retry=None, **OPTIONS) as client:
            await client.set("room", "1")

    asyncio.run(send())


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("send", [with_redis, with_async_redis])
def test_redis_answers(send, answer, stub, verdict):
    assert verdict(caught(send, "127.0.0.1", stub(answer))) == ANSWERS[answer]


@pytest.mark.parametrize("send", [with_redis, with_async_redis])
def test_redis_does_not_connect(send, web, verdict):
    assert verdict(caught(send, "127.0.0.1", web.refused_port)) == NEVER_SENT
    assert verdict(caught(send, "booking.invalid", 6379)) == NEVER_SENT
    assert verdict(caught(send, "127.0.0.1", web.silent_port)) == NEVER_SENT


def test_redis_does_not_trust_the_server(web, verdict):
    with redis.Redis("127.0.0.1", web.tls_port, ssl=True, retry=None, **OPTIONS) as client:
        assert verdict(caught(client.ping)) == NOT_HERE


def test_no_free_connection_in_the_pool_of_redis(verdict):
    pool = redis.ConnectionPool(max_connections=0)

    assert verdict(caught(pool.get_connection)) == NEVER_SENT


def test_a_watched_key_that_changed_is_a_conflict(verdict):
    assert verdict(redis.WatchError("Watched variable changed.")) == CONFLICT
