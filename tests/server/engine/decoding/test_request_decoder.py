import numpy as np
import pytest

from server.engine.decoding.constrained import ConstrainedBeamSearch
from server.engine.decoding.request_decoder import RequestDecoder
from server.engine.decoding.search import SearchLimits
from server.engine.model_runner import Candidates, StepOutputs
from server.interface.word_tokens import WordTokens
from tests.fakes.engine import END
from tests.fakes.sentence_params import sentence_params

VOCAB = 100
ROWS = np.array([0, 1])
WORDS = WordTokens(continuations=frozenset(range(10, 60)))
FAR_DOWN = 70  # begins a word, behind all tokens that continue one


@pytest.mark.parametrize("suppressed", [(), (2,)], ids=["all", "without the best beginning of a word"])
def test_behind_a_phrase_a_token_that_begins_a_word_is_found(suppressed: tuple[int, ...]) -> None:
    params = sentence_params(2, required_phrases=((1,),), suppress_tokens=suppressed)
    search, decoder = ConstrainedBeamSearch(2, SearchLimits(4, 8, END, words=WORDS)), RequestDecoder(params, END, 1.0)
    search.add(params)
    first = np.array([[[3, 1], [3, 1]]]), np.array([[[-1.0, -2.0], [-np.inf, -np.inf]]], np.float32)
    search.advance(*first)
    behind = search.prefixes(0)[:, 0].tolist().index(1)
    logits = np.full((2, VOCAB), -50.0, np.float32)
    logits[:, 10:60], logits[:, FAR_DOWN], logits[:, 2] = -2.0, -3.0, -1.0
    best = np.argsort(-logits, axis=1, kind="stable")[:, : search.num_graph_candidates]
    assert best[behind].tolist() == [2, 10, 11, 12]
    log_probs_of_best = np.take_along_axis(logits, best, axis=1)
    outputs = StepOutputs(Candidates(best, log_probs_of_best, np.zeros(2, np.float32), logits), ROWS)
    tokens = np.zeros((2, search.num_candidates), np.int64)
    log_probs = np.zeros(tokens.shape, np.float32)
    decoder.replace_candidates(search, 0, outputs, ROWS, tokens, log_probs)
    assert decoder.failure is None
    found = tokens[behind][log_probs[behind] > -np.inf].tolist()
    begins = [token for token in found if token not in WORDS.continuations and token != 1]
    assert begins[0] == (FAR_DOWN if suppressed else 2)
