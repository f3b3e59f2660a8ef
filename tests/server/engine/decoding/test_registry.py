import pytest

from kernels import searches
from server.engine.decoding.beam_search import BeamSearch
from server.engine.decoding.greedy_search import GreedySearch
from server.engine.decoding.native_search import NativeBeamSearch, NativeGreedySearch
from server.engine.decoding.registry import SearchKind
from server.engine.decoding.search import SearchLimits
from server.interface.request import Sampling
from tests.fakes.sentence_params import sentence_params

LIMITS = SearchLimits(max_requests=8, max_new_tokens=10, end_token=0)


@pytest.mark.parametrize(
    ("params", "kind"),
    [
        ({}, SearchKind("greedy")),
        ({"beam_size": 4}, SearchKind("plain_beam", 4)),
        ({"beam_size": 4, "patience": 2.0}, SearchKind("beam", 4)),
        ({"beam_size": 4, "coverage_penalty": 0.1}, SearchKind("beam", 4)),
        ({"beam_size": 4, "num_beam_groups": 2}, SearchKind("diverse", 4, 2)),
        ({"beam_size": 4, "required_phrases": ((1,),)}, SearchKind("constrained", 4)),
        ({"beam_size": 4, "required_terms": (((1,),),)}, SearchKind("constrained", 4)),
        ({"sampling": Sampling(), "num_hypotheses": 3}, SearchKind("independent", 3)),
        ({"return_alternatives": True, "num_hypotheses": 2}, SearchKind("independent", 2)),
    ],
)
def test_requests_with_equal_needs_share_a_search(params: dict[str, object], kind: SearchKind) -> None:
    assert SearchKind.of(sentence_params(**params)) == kind


@pytest.mark.parametrize("is_available", [True, False])
def test_searches_in_c_are_opened_where_the_library_was_built(
    is_available: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_available and not searches.IS_AVAILABLE:
        pytest.skip("the library was not built")
    monkeypatch.setattr(searches, "IS_AVAILABLE", is_available)
    greedy, beam = SearchKind("greedy").open(LIMITS), SearchKind("plain_beam", 4).open(LIMITS)
    assert isinstance(greedy, NativeGreedySearch if is_available else GreedySearch)
    assert isinstance(beam, NativeBeamSearch if is_available else BeamSearch)
    assert beam.beam_size == 4
