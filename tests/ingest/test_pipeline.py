"""What the pipeline promises: commit before answer, limits, fairness, and a database that fails."""

import asyncio
import contextlib
from datetime import UTC, datetime
from urllib.parse import urlsplit

import grpc
import psycopg
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from tests.ingest.conftest import serving

from toolfault.ingest.errors import Overloaded, StoreUnavailable
from toolfault.ingest.pipeline import Limits, Pipeline
from toolfault.ingest.select import Batch
from toolfault.store.rows import Call

NOW = datetime.now(UTC)


def call(number, **told):
    """The row of an ok call."""
    row = Call(
        NOW, None, NOW, 1000, 1, False, False, number.to_bytes(16), number.to_bytes(8), None,
        "booking", "prod", "book", "ok", None, None, "none", "applied", None, None, None, None,
        None, None, None, None, None, None,
    )  # fmt: skip
    return row._replace(**told)


def failed(number, **told):
    outcome = {"outcome": "failed", "code": "INTERNAL", "action": "stop_and_tell_user"}
    return call(number, **outcome | told)


def batch(*calls):
    return Batch(list(calls))


def stored(url):
    with psycopg.connect(url) as conn:
        rows = conn.execute("SELECT trace_id FROM tool_call_all ORDER BY 1").fetchall()
    return [int.from_bytes(row[0]) for row in rows]


@contextlib.contextmanager
def locked(url):
    """The totals locked by somebody else, so that no batch can be committed."""
    with psycopg.connect(url) as conn:
        conn.execute("LOCK TABLE call_total")
        yield


async def test_submit_returns_after_the_commit(database_url):
    async with Pipeline(database_url) as pipeline:
        assert await pipeline.submit(batch(call(1), failed(2))) == 0
        assert stored(database_url) == [1, 2]
        assert pipeline.problem() is None


async def test_the_same_batch_ten_times_at_once_is_stored_and_counted_once(database_url):
    async with Pipeline(database_url) as pipeline:
        await asyncio.gather(*(pipeline.submit(batch(call(1), call(2))) for _ in range(10)))
        counted = pipeline.metrics.registry.get_sample_value(
            "toolfault_ingest_records_total", {"kind": "call"}
        )
    assert stored(database_url) == [1, 2]
    assert counted == 2
    with psycopg.connect(database_url) as conn:
        assert conn.execute("SELECT sum(calls) FROM call_total").fetchone() == (2,)


async def test_what_waits_is_written_together(database_url):
    async with Pipeline(database_url, limits=Limits(writers=1)) as pipeline:
        with locked(database_url):
            first = asyncio.create_task(pipeline.submit(batch(call(1))))
            await asyncio.sleep(0.2)
            rest = [asyncio.create_task(pipeline.submit(batch(call(n)))) for n in range(2, 40)]
            await asyncio.sleep(0.2)
            assert stored(database_url) == []
        await asyncio.gather(first, *rest)
        with psycopg.connect(database_url) as conn:
            # One transaction for the first, one for all that came meanwhile.
            [(transactions,)] = conn.execute("SELECT count(DISTINCT xmin::text) FROM tool_call_ok")
    assert transactions == 2


# --- rows the database refuses ------------------------------------------------------------------


@pytest.mark.parametrize(
    "poison", [{"message": "a\0b"}, {"tool": "x" * 3_000_000}, {"attributes": "{"}]
)
async def test_a_poison_row_is_refused_alone(database_url, poison):
    rows = [failed(number) for number in range(1, 9)]
    rows[4] = failed(5, **poison)
    async with Pipeline(database_url, limits=Limits(writers=1)) as pipeline:
        with locked(database_url):
            first = asyncio.create_task(pipeline.submit(batch(call(100))))
            await asyncio.sleep(0.2)
            bad = batch(*rows)
            together = [
                asyncio.create_task(pipeline.submit(one))
                for one in (batch(call(50)), bad, batch(call(60)))
            ]
            await asyncio.sleep(0.2)
        assert await asyncio.gather(first, *together) == [0, 0, 1, 0]
        assert bad.refused == {"not_storable": 1}
        assert pipeline.problem() is None
    assert stored(database_url) == [1, 2, 3, 4, 6, 7, 8, 50, 60, 100]


# --- limits and fairness --------------------------------------------------------------------------


async def test_bytes_beyond_the_limit_are_refused_and_given_back(database_url):
    async with Pipeline(database_url, limits=Limits(max_bytes=1000)) as pipeline:
        with pipeline.admit("a") as first:
            first.grow(400)
            with pipeline.admit("a") as second, pytest.raises(Overloaded) as refused:
                second.grow(400)  # it would hold 800 while 600 are free
            assert refused.value.retry_after >= 1
            with pipeline.admit("b") as other:
                other.grow(500)  # there is room for the next client
        with pipeline.admit("a") as again:
            again.grow(1000)
        assert pipeline.metrics.registry.get_sample_value("toolfault_ingest_queue_bytes") == 0


async def test_rows_beyond_the_limit_are_refused(database_url):
    limits = Limits(max_rows=10, writers=1)
    async with Pipeline(database_url, limits=limits) as pipeline:
        with locked(database_url):
            first = asyncio.create_task(pipeline.submit(batch(call(1))))
            await asyncio.sleep(0.2)
            waiting = asyncio.create_task(pipeline.submit(batch(*map(call, range(2, 11)))))
            await asyncio.sleep(0.05)
            with pytest.raises(Overloaded):
                await pipeline.submit(batch(call(11), call(12)))
        await asyncio.gather(first, waiting)
    assert stored(database_url) == list(range(1, 11))


async def test_a_greedy_client_does_not_starve_the_others(database_url, monkeypatch):
    monkeypatch.setattr("toolfault.ingest.pipeline.GROUP_ROWS", 4)
    order = []

    async def send(pipeline, number, client):
        await pipeline.submit(batch(call(number)), client)
        order.append(number)

    async with Pipeline(database_url, limits=Limits(writers=1)) as pipeline:
        with locked(database_url):
            tasks = [asyncio.create_task(send(pipeline, 1, "greedy"))]
            await asyncio.sleep(0.2)
            tasks += [asyncio.create_task(send(pipeline, n, "greedy")) for n in range(2, 30)]
            tasks += [
                asyncio.create_task(send(pipeline, n, f"client {n}")) for n in range(100, 103)
            ]
            await asyncio.sleep(0.2)
        await asyncio.gather(*tasks)
    # The group after the first has one of each client, though 28 of the greedy one came before.
    assert set(order[1:5]) == {2, 100, 101, 102}


# --- a database that fails --------------------------------------------------------------------------


class Gate:
    """A door before the database: open, shut (connections are refused), or stuck (nobody answers)."""

    def __init__(self, url):
        place = urlsplit(url)
        self._target = place.hostname, place.port
        self._place = place
        self._server, self._links, self._moving = None, set(), asyncio.Event()
        self.port = None

    @property
    def url(self):
        login, _, _ = self._place.netloc.rpartition("@")
        return self._place._replace(netloc=f"{login}@127.0.0.1:{self.port}").geturl()

    async def open(self):
        self._moving.set()
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", self.port or 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def shut(self):
        self._server.close()
        for link in self._links.copy():
            link.cancel()
        await asyncio.gather(*self._links, return_exceptions=True)

    def stick(self):
        self._moving.clear()

    def come_loose(self):
        self._moving.set()

    async def _connect(self, *client):
        database = await asyncio.open_connection(*self._target)
        pairs = ((client[0], database[1]), (database[0], client[1]))
        for reader, writer in pairs:
            link = asyncio.create_task(self._carry(reader, writer))
            self._links.add(link)
            link.add_done_callback(self._links.discard)

    async def _carry(self, reader, writer):
        with contextlib.suppress(OSError):
            try:
                while data := await reader.read(65_536):
                    await self._moving.wait()
                    writer.write(data)
            finally:
                writer.close()


@pytest.fixture
async def gate(database_url):
    gate = Gate(database_url)
    await gate.open()
    yield gate
    gate.come_loose()
    await gate.shut()


async def test_while_the_database_is_away_requests_are_told_to_come_again(gate, database_url):
    async with serving(gate.url) as service:
        assert (await service.post("traces", b"")).status_code == 200
        await gate.shut()
        with pytest.raises(StoreUnavailable):
            await service.pipeline.submit(batch(call(1)))
        answer = await service.post("traces", b"")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await service.call("traces", b"")
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
        assert _retry_delay(refused.value) == 2
        await gate.open()
        await _well(service.pipeline)
        assert await service.pipeline.submit(batch(call(1))) == 0
    assert stored(database_url) == [1]


def _retry_delay(error):
    details = dict(error.trailing_metadata())["grpc-status-details-bin"]
    info = RetryInfo()
    assert Status.FromString(details).details[0].Unpack(info)
    return info.retry_delay.seconds


async def test_a_database_that_hangs_is_answered_for_in_time(gate, database_url):
    async with Pipeline(gate.url, limits=Limits(write_seconds=1.0)) as pipeline:
        await pipeline.submit(batch(call(1)))
        gate.stick()
        with pytest.raises(StoreUnavailable, match="has not answered"):
            await pipeline.submit(batch(call(2)))
        with pytest.raises(StoreUnavailable):
            pipeline.check()
        gate.come_loose()
        await _well(pipeline)
        await pipeline.submit(batch(call(2)))
    assert stored(database_url) == [1, 2]


async def test_a_read_only_database_is_a_problem_until_it_is_not(database_url):
    name = database_url.rpartition("/")[2]
    with psycopg.connect(database_url, autocommit=True) as conn:
        async with Pipeline(database_url) as pipeline:
            conn.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
            conn.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()")  # fmt: skip
            with pytest.raises(StoreUnavailable):
                await pipeline.submit(batch(call(1)))
            while pipeline.problem() != "the database is read-only":
                await asyncio.sleep(0.05)
            conn.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
            await _well(pipeline)
            assert await pipeline.submit(batch(call(1))) == 0


async def test_a_lock_held_too_long_is_no_reason_to_refuse_rows(database_url):
    async with Pipeline(database_url, limits=Limits(write_seconds=0.5)) as pipeline:
        with locked(database_url), pytest.raises(StoreUnavailable):
            await pipeline.submit(batch(call(1)))
        await _well(pipeline)
        assert await pipeline.submit(batch(call(1))) == 0
    assert stored(database_url) == [1]


async def test_a_database_that_is_not_there_yet_does_not_stop_the_start():
    async with Pipeline("postgresql://nobody:hunter2@127.0.0.1:1/none") as pipeline:
        with pytest.raises(StoreUnavailable):
            await pipeline.submit(batch(call(1)))
        assert "hunter2" not in pipeline.problem()


async def test_stopping_writes_what_waits(database_url):
    pipeline = Pipeline(database_url, limits=Limits(writers=1))
    await pipeline.start()
    with locked(database_url):
        waiting = [asyncio.create_task(pipeline.submit(batch(call(n)))) for n in range(1, 4)]
        await asyncio.sleep(0.1)
        stopping = asyncio.create_task(pipeline.stop())
        await asyncio.sleep(0.1)
        with pytest.raises(StoreUnavailable):
            await pipeline.submit(batch(call(9)))
    await stopping
    assert await asyncio.gather(*waiting) == [0, 0, 0]
    assert stored(database_url) == [1, 2, 3]


async def _well(pipeline):
    async with asyncio.timeout(30):
        while pipeline.problem() is not None:
            await asyncio.sleep(0.05)
