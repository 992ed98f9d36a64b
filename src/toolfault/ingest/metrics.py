"""The service's own counts, as /metrics shows them."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from toolfault import conventions as c
from toolfault.redact import faults

#: Why a record is refused; a closed set, for each is a series.
REASONS = ("invalid_id", "not_storable")
SIGNALS = ("traces", "logs", "metrics")
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """Counts of one process, in the registry given."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.stored = Counter(
            c.INGEST_RECORDS, "Records that were new and are committed", ["kind"], registry=registry
        )
        self.refused = Counter(
            c.INGEST_REFUSED,
            "Records that can never be stored",
            ["signal", "reason"],
            registry=registry,
        )
        self.ignored = Counter(
            c.INGEST_IGNORED, "Records that are not about tools", ["signal"], registry=registry
        )
        self.requests = Counter(
            c.INGEST_REQUESTS,
            "Requests answered",
            ["transport", "signal", "status"],
            registry=registry,
        )
        self.duration = Histogram(
            c.INGEST_REQUEST_DURATION,
            "From the request's first byte to its answer",
            ["transport"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self.queue_bytes = Gauge(
            c.INGEST_QUEUE_BYTES, "Decoded bytes read and not yet committed", registry=registry
        )
        self.scrub_faults = Counter(
            c.INGEST_SCRUB_FAULTS, "Texts withheld as the scrubber failed", registry=registry
        )
        self._faults_told = faults()
        self._start_at_zero()

    def _start_at_zero(self) -> None:
        # A series that is there before its first event makes that event a rise.
        for kind in ("call", "event", "log"):
            self.stored.labels(kind)
        for signal in SIGNALS:
            self.ignored.labels(signal)
            for reason in REASONS:
                self.refused.labels(signal, reason)

    def count_records(self, signal: str, ignored: int, refused: Mapping[str, int]) -> None:
        """What of a request was not stored."""
        self.ignored.labels(signal).inc(ignored)
        for reason, amount in Tally(refused).items():
            self.refused.labels(signal, reason).inc(amount)
        told, self._faults_told = self._faults_told, faults()
        self.scrub_faults.inc(self._faults_told - told)
