from collections import Counter
from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from server.operations.metrics import LeanHistogram
from server.translation.types import TokenCounts

_BOUNDS = (1, 4, 16)
_VALUES = [0, 1, 1, 2, 4, 5, 16, 17, 400]


def _samples(registry: CollectorRegistry) -> Mapping[tuple[str, str], float]:
    return {
        (sample.name, sample.labels.get("le", "")): sample.value
        for family in text_string_to_metric_families(generate_latest(registry).decode())
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def test_counts_make_the_same_samples_as_single_observations() -> None:
    own, library = CollectorRegistry(), CollectorRegistry()
    histogram = LeanHistogram("tokens", "Tokens.", _BOUNDS, own)
    histogram.observe_all(Counter(_VALUES[:3]))
    for value in _VALUES[3:]:
        histogram.observe(value)
    theirs = Histogram("tokens", "Tokens.", buckets=_BOUNDS, registry=library)
    for value in _VALUES:
        theirs.observe(value)
    assert _samples(own) == _samples(library)


def test_token_counts_are_added_and_summed() -> None:
    counts = TokenCounts.of([(3, 4), (5, 4)]) + TokenCounts.of([(3, 9)])
    assert counts == TokenCounts({3: 2, 5: 1}, {4: 2, 9: 1})
    assert (counts.num_sentences, counts.num_source_tokens, counts.num_target_tokens) == (3, 11, 17)
