from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram

from loadtest.results.percentiles import encoded, histogram_of, percentiles_ms, values_at


@pytest.mark.parametrize("count", [1, 2, 7, 99, 100, 101, 140, 999, 1000, 5000])
def test_a_percentile_is_the_value_that_the_share_does_not_exceed(count: int) -> None:
    seconds = np.random.default_rng(count).lognormal(-2.0, 1.0, count)
    found = percentiles_ms(seconds)
    assert found is not None
    ascending = sorted(seconds * 1000)
    for percent, value in (("50", found.p50), ("90", found.p90), ("95", found.p95), ("99", found.p99)):
        assert value == pytest.approx(ascending[ceil(Fraction(percent) / 100 * count) - 1], rel=1e-3)
    assert found.p999 == pytest.approx(ascending[ceil(Fraction("99.9") / 100 * count) - 1], rel=1e-3)
    assert found.max == pytest.approx(ascending[-1], rel=1e-12)
    assert found.mean == pytest.approx(float(np.mean(seconds)) * 1000)
    assert found.count == count


def test_the_encoded_histogram_survives_decoding() -> None:
    histogram = histogram_of(np.random.default_rng(3).lognormal(-2.0, 1.0, 3000))
    decoded = HdrHistogram.decode(encoded(histogram))
    assert decoded.get_total_count() == 3000
    assert values_at(decoded, (50, 99, 99.9)) == values_at(histogram, (50, 99, 99.9))
