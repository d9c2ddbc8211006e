"""The metrics of a server, in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from grammarspec.decoding import Statistics
    from grammarspec.serving.cache import CacheStats

__all__ = ["Gauges", "Metrics"]

_CACHE = {
    "hits": "Grammars whose constraint was in the cache.",
    "misses": "Grammars that were compiled.",
    "evictions": "Constraints that were removed from the cache to make room.",
    "failures": "Grammars that could not be compiled.",
}
_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)


class Gauges:
    """Functions that are called when the metrics are read, for values that are not counted here.

    Attributes:
        running: returns the number of texts in the batch.
        waiting: returns the number of requests that are being prepared, or wait for room in the batch.
        rounds: returns the number of rounds so far.
        phases: returns the seconds of all rounds so far, by phase.
        cache: returns the counters of the cache of constraints.
    """

    def __init__(
        self,
        running: Callable[[], int],
        waiting: Callable[[], int],
        rounds: Callable[[], int],
        phases: Callable[[], Mapping[str, float]],
        cache: Callable[[], CacheStats],
    ) -> None:
        self.running, self.waiting, self.rounds, self.phases, self.cache = running, waiting, rounds, phases, cache


class _Asked(Collector):
    def __init__(self, gauges: Gauges) -> None:
        self._gauges = gauges

    def collect(self) -> Iterable[Metric]:
        yield GaugeMetricFamily("grammarspec_running_texts", "Texts in the batch.", self._gauges.running())
        waiting = "Requests that are being prepared, or wait for room in the batch."
        yield GaugeMetricFamily("grammarspec_waiting_requests", waiting, self._gauges.waiting())
        yield CounterMetricFamily("grammarspec_rounds", "Rounds of the batch.", self._gauges.rounds())
        phases = CounterMetricFamily(
            "grammarspec_phase_seconds", "Seconds of rounds: draft, mask, target, verify, commit.", labels=["phase"]
        )
        for name, seconds in self._gauges.phases().items():
            phases.add_metric([name], seconds)
        yield phases
        cache = self._gauges.cache()
        yield GaugeMetricFamily("grammarspec_cache_bytes", "Bytes of the constraints in the cache.", cache.bytes)
        yield GaugeMetricFamily("grammarspec_cache_entries", "Constraints in the cache.", cache.entries)
        for counted, what in _CACHE.items():
            yield CounterMetricFamily(f"grammarspec_cache_{counted}", what, getattr(cache, counted))


class Metrics:
    """The metrics of one server.

    Args:
        gauges: the values that are asked for when the metrics are read.
    """

    def __init__(self, gauges: Gauges) -> None:
        self._registry = registry = CollectorRegistry()
        registry.register(_Asked(gauges))
        self._requests = Counter(
            "grammarspec_requests", "Requests that were answered.", ["endpoint", "status"], registry=registry
        )
        self._seconds = Histogram(
            "grammarspec_request_seconds",
            "From a request to the end of its answer.",
            buckets=_BUCKETS,
            registry=registry,
        )
        self._prepared = Histogram(
            "grammarspec_prepare_seconds",
            "From a request to its tokens and its constraint, with the first mask.",
            buckets=_BUCKETS,
            registry=registry,
        )
        self._first = Histogram(
            "grammarspec_first_token_seconds",
            "From joining the batch to the first tokens.",
            buckets=_BUCKETS,
            registry=registry,
        )
        self._cancelled = Counter("grammarspec_cancelled", "Requests whose clients left.", registry=registry)
        self._prompt = Counter("grammarspec_prompt_tokens", "Tokens of prompts.", registry=registry)
        self._tokens = Counter("grammarspec_generated_tokens", "Generated tokens.", registry=registry)
        self._drafted = Counter("grammarspec_draft_tokens", "Draft tokens.", ["proposer"], registry=registry)
        self._accepted = Counter(
            "grammarspec_accepted_draft_tokens", "Draft tokens that were accepted.", ["proposer"], registry=registry
        )

    def answered(self, endpoint: str, status: int, seconds: float) -> None:
        """Count a request that was answered.

        Args:
            endpoint: ``"chat"`` or ``"completions"``.
            status: the HTTP status.
            seconds: from the request to the end of its answer.
        """
        self._requests.labels(endpoint, str(status)).inc()
        self._seconds.observe(seconds)

    def prepared(self, seconds: float) -> None:
        """Record how long the preparation of a request took."""
        self._prepared.observe(seconds)

    def left(self) -> None:
        """Count a request whose client has disconnected."""
        self._cancelled.inc()

    def text(self, statistics: Statistics) -> None:
        """Count a text that has ended."""
        self._prompt.inc(statistics.prompt_tokens)
        self._tokens.inc(statistics.tokens)
        self._first.observe(statistics.prefill_seconds)
        for name, count in statistics.proposed.items():
            self._drafted.labels(name).inc(count)
        for name, count in statistics.accepted.items():
            self._accepted.labels(name).inc(count)

    def page(self) -> bytes:
        """All metrics as the text that Prometheus reads."""
        return generate_latest(self._registry)
