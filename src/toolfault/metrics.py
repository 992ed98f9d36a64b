"""The totals kept in the store as Prometheus metrics.

They live in the store, not in this process: exact over restarts, kills and replicas.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.samples import Exemplar
from prometheus_client.utils import floatToGoString

from toolfault import conventions as names
from toolfault.store.stage import ATTEMPT_BOUNDS, DURATION_BOUNDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import date

    from prometheus_client.metrics_core import Metric

    from toolfault.store.queries.totals import Buckets, CallTotal, EventTotal, Size, Totals, Waiting

_DURATION_BOUNDS = [bound / 1e6 for bound in DURATION_BOUNDS]  # seconds
_MAX_EXEMPLAR = 128  # characters of label names and values, by OpenMetrics
_PLACE = (names.LABEL_SERVICE, names.LABEL_ENVIRONMENT)
_TOOL = (*_PLACE, names.LABEL_TOOL)
_AGENT = (*_PLACE, names.LABEL_AGENT)
_MODEL = (*_PLACE, names.LABEL_MODEL)
#: The totals of events: name, its labels, what it counts.
_EVENTS = {
    names.BUDGET_EXHAUSTED_TOTAL: (
        _TOOL,
        "Conversations in which a tool's failure budget ran out.",
    ),
    names.GENERIC_ERROR_TOTAL: (
        _TOOL,
        "Generic error texts of a framework that hid a tool's failure.",
    ),
    names.BACKSTOP_REACHED_TOTAL: (_TOOL, "Failures that no guard had mapped."),
    names.UNREGISTERED_TOOL_CALLS: (_PLACE, "Calls of tools that nobody registered."),
    names.RUN_LIMIT_EXCEEDED_TOTAL: (_AGENT, "Runs stopped at a limit."),
    names.MODEL_CALLS: (_MODEL, "Steps in which a model was called."),
    names.MODEL_ERRORS: (_MODEL, "Steps in which a model's call ended in an error."),
    names.MODEL_ATTEMPTS: (_MODEL, "Attempts of all steps."),
    names.MODEL_RETRIES_EXHAUSTED: (_MODEL, "Steps that failed after the last retry."),
    names.ERROR_GROUPS_NEW: ((*_TOOL, names.LABEL_CODE), "Error groups seen for the first time."),
    names.LATE_CALLS: (_PLACE, "Calls received more than ten minutes after they ended."),
    names.TELEMETRY_DROPPED_TOTAL: (_PLACE, "Telemetry records that services had to drop."),
}


class Collects(Protocol):
    """Whatever gives metrics: a registry or a collector."""

    def collect(self) -> Iterable[Metric]:
        """The metrics of this moment."""
        ...


class ToolTotals:
    """What /metrics/tools shows, read at each scrape."""

    def __init__(self, read: Callable[[], Totals]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        """All totals as of one moment of the store."""
        totals = self._read()
        yield _calls(totals.calls)
        yield from _histograms(totals.buckets)
        yield from _events(totals.events)
        yield _waiting(totals.waiting)


class StoreSize:
    """How full the store is, on /metrics."""

    def __init__(self, read: Callable[[], Size], today: Callable[[], date]) -> None:
        self._read, self._today = read, today

    def collect(self) -> Iterator[Metric]:
        """Bytes of the database and days for which partitions are prepared."""
        size = self._read()
        yield GaugeMetricFamily(
            names.DATABASE_BYTES, "Bytes the database takes.", value=size.database_bytes
        )
        ahead = (size.last_partition - self._today()).days if size.last_partition else 0
        yield GaugeMetricFamily(
            names.PARTITIONS_AHEAD, "Days ahead for which there are partitions.", value=ahead
        )


class Together:
    """Several sources as one."""

    def __init__(self, *sources: Collects) -> None:
        self._sources = sources

    def collect(self) -> Iterator[Metric]:
        """Everything each source gives, in turn."""
        for source in self._sources:
            yield from source.collect()


def exposition(source: Collects, accept: str) -> tuple[bytes, str]:
    """The metrics in the text format the scraper accepts, and its content type."""
    encode, content_type = choose_encoder(accept)
    return encode(source), content_type


def _calls(rows: Iterable[CallTotal]) -> Metric:
    labels = (*_TOOL, names.LABEL_OUTCOME, names.LABEL_CODE)
    family = CounterMetricFamily(names.TOOL_CALLS, "Tool calls by how they ended.", labels=labels)
    for row in rows:
        values = (row.service, row.environment, row.tool, row.outcome, row.code)
        family.add_metric(values, row.calls, exemplar=_exemplar(row))
    return family


def _exemplar(row: CallTotal) -> Exemplar | None:
    if row.exemplar_at is None or row.exemplar_trace is None:
        return None
    labels = {"trace_id": row.exemplar_trace.hex()}
    if row.exemplar_reference:
        labels = {"ref": row.exemplar_reference, **labels}
    if sum(len(name) + len(value) for name, value in labels.items()) > _MAX_EXEMPLAR:
        return None
    return Exemplar(labels, 1.0, row.exemplar_at.timestamp())


def _histograms(rows: Sequence[Buckets]) -> Iterator[Metric]:
    durations = HistogramMetricFamily(
        names.TOOL_CALL_DURATION,
        "How long tool calls took, attempts and waits together.",
        labels=_TOOL,
    )
    attempts = HistogramMetricFamily(
        names.TOOL_ATTEMPTS, "Attempts of tool calls; 0 where nothing ran.", labels=_TOOL
    )
    for row in rows:
        place = (row.service, row.environment, row.tool)
        durations.add_metric(
            place, _buckets(_DURATION_BOUNDS, row.duration_buckets), row.duration_us / 1e6
        )
        attempts.add_metric(place, _buckets(ATTEMPT_BOUNDS, row.attempts_buckets), row.attempts)
    yield durations
    yield attempts


def _buckets(bounds: Sequence[float], counts: Sequence[int]) -> list[tuple[str, float]]:
    uppers = [*map(floatToGoString, bounds), "+Inf"]
    return [*zip(uppers, map(float, accumulate(counts)), strict=True)]


def _events(rows: Iterable[EventTotal]) -> Iterator[Metric]:
    families = {
        name: CounterMetricFamily(name, says, labels=labels)
        for name, (labels, says) in _EVENTS.items()
    }
    for row in rows:
        if (family := families.get(row.metric)) is not None:
            labels = _EVENTS[family.name][0]
            family.add_metric(_label_values(row, len(labels)), row.amount)
    yield from families.values()


def _label_values(row: EventTotal, count: int) -> tuple[str, ...]:
    """An event's labels: none of its own, one, or tool and code in one text."""
    own = (row.label,) if count == len(_TOOL) else tuple(row.label.rsplit(" ", 1))
    return (row.service, row.environment, *own)[:count]


def _waiting(rows: Iterable[Waiting]) -> Metric:
    family = GaugeMetricFamily(
        names.DEAD_LETTERS_WAITING, "Dead letters that nobody has taken yet.", labels=_TOOL
    )
    for row in rows:
        family.add_metric((row.service, row.environment, row.tool), row.letters)
    return family
