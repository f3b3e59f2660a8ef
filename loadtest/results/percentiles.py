"""Percentiles of durations, by HdrHistogram: three significant digits from a microsecond to an hour.

A percentile is the smallest duration that at least that share of the values does not exceed, without interpolation,
precise to 0.1 %. Mean and maximum are exact.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

import numpy as np
from hdrh.histogram import HdrHistogram
from numpy.typing import NDArray

LONGEST_MICROSECONDS = 3_600_000_000
_SIGNIFICANT_DIGITS = 3
_PERCENTS = (50.0, 90.0, 95.0, 99.0, 99.9)


@dataclass(frozen=True, slots=True)
class Percentiles:
    """A distribution of durations, in milliseconds."""

    count: int
    mean: float
    p50: float
    p90: float
    p95: float
    p99: float
    p999: float
    max: float


def percentiles_ms(seconds: Iterable[float]) -> Percentiles | None:
    """Return the percentiles of durations in seconds; None without durations. A negative duration counts as 0."""
    values = np.maximum(np.fromiter(seconds, dtype=np.float64), 0.0)  # [num_values]
    if not values.size:
        return None
    largest = float(values.max()) * 1000
    # A histogram returns the upper edge of a bucket, which may exceed all values.
    p50, p90, p95, p99, p999 = (min(value, largest) for value in values_at(histogram_of(values), _PERCENTS))
    return Percentiles(values.size, float(values.mean()) * 1000, p50, p90, p95, p99, p999, largest)


def histogram_of(seconds: NDArray[np.float64]) -> HdrHistogram:
    """Return the histogram of durations [num_values] in microseconds; more than an hour counts as an hour."""
    histogram = HdrHistogram(1, LONGEST_MICROSECONDS, _SIGNIFICANT_DIGITS)  # counts in 64 bits
    microseconds = np.clip(np.rint(seconds * 1e6), 0, LONGEST_MICROSECONDS).astype(np.int64)
    for value, count in zip(*(part.tolist() for part in np.unique(microseconds, return_counts=True)), strict=True):
        histogram.record_value(value, count)
    return histogram


def values_at(histogram: HdrHistogram, percents: Iterable[float]) -> list[float]:
    """Return the milliseconds at each of the `percents` of a histogram that is not empty.

    The library's own lookup rounds ranks to the nearest, so that p99 of 140 values would be the 138th, and visits every
    bucket. Here the share must be reached.
    """
    total = histogram.get_total_count()
    reached = np.cumsum(np.frombuffer(histogram.counts, dtype=np.int64))  # [num_buckets]
    ranks = [max(ceil(round(percent * total / 100, 6)), 1) for percent in percents]
    buckets = [histogram.get_value_from_index(int(place)) for place in np.searchsorted(reached, ranks)]
    return [histogram.get_highest_equivalent_value(bucket) / 1000 for bucket in buckets]


def encoded(histogram: HdrHistogram) -> str:
    """Return the histogram in HdrHistogram's own format: V2, compressed, base64."""
    blob: bytes = histogram.encode()
    return blob.decode("ascii")
