"""A histogram of whole numbers that takes many of them at once."""

import threading
import time
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector


class CountHistogram(Collector):
    """Histogram with upper bounds, registered under a name. Thread-safe.

    The library's own locks and searches for each number: 20 ms of the event loop for a call of 3000 sentences.
    """

    def __init__(self, name: str, documentation: str, bounds: Sequence[int], registry: CollectorRegistry) -> None:
        self._name = name
        self._documentation = documentation
        self._bounds = bounds
        self._numbers = [0] * (len(bounds) + 1)
        self._sum = 0
        self._created = time.time()
        self._lock = threading.Lock()
        registry.register(self)

    def observe(self, counts: Mapping[int, int]) -> None:
        """Add values, each so many times."""
        with self._lock:
            for value, number in counts.items():
                self._numbers[bisect_left(self._bounds, value)] += number
                self._sum += value * number

    def collect(self) -> Iterable[Metric]:
        """Yield the samples, for the registry."""
        with self._lock:
            totals, sum_value = list(accumulate(self._numbers)), self._sum
        bounds = [str(float(bound)) for bound in self._bounds] + ["+Inf"]
        family = HistogramMetricFamily(
            self._name, self._documentation, buckets=list(zip(bounds, totals, strict=True)), sum_value=sum_value
        )
        family.add_sample(f"{self._name}_created", {}, self._created)
        yield family
