"""Our beam search against Hugging Face `generate` on the same random weights: every hypothesis and its score."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import MarianMTModel

from model.checkpoints.weights import build_model
from model.families.registry import read_checkpoint
from server.interface.request import Completion, SentenceParams
from tests.fakes.eager_runner import EagerRunner
from tests.fakes.engine import DrivenEngine, request
from tests.fakes.sentence_params import sentence_params
from tests.model.random_models import SavedMarian, save_marian

NUM_SENTENCES = 10
MAX_ROWS = NUM_SENTENCES * 8
LIMIT = 12  # tokens with the end, without the start
PENALTIES = (-0.5, 0.0, 0.6, 1.0, 2.0)

# Whether the last token that the limit allows must be the end is a setting of the checkpoint.
MODELS: dict[str, dict[str, object]] = {
    "forced end": {"forced_eos_token_id": 0},
    "free end": {"forced_eos_token_id": None, "decoder_layers": 2},
}


class Pair:
    """One checkpoint in both implementations."""

    def __init__(self, saved: SavedMarian) -> None:
        self.reference: MarianMTModel = saved.reference
        self.model = build_model(read_checkpoint(saved.folder))
        config = self.model.config
        self.end, self.pad = config.eos_token_id, config.pad_token_id
        self._engine = DrivenEngine(EagerRunner(self.model, MAX_ROWS), self.end, config.forced_eos)

    def ours(self, sources: Sequence[list[int]], params: SentenceParams) -> list[Completion]:
        """Return the answers of our engine to all requests together."""
        return self._engine.run([request(source, params) for source in sources])

    def theirs(self, sources: Sequence[list[int]], params: SentenceParams) -> list[tuple[list[int], float]]:
        """Return the hypotheses of `generate`: tokens without start, end and padding, and scores."""
        longest = max(map(len, sources))
        tokens = torch.tensor([source + [self.pad] * (longest - len(source)) for source in sources])
        output = self.reference.generate(
            input_ids=tokens,
            attention_mask=(tokens != self.pad).long(),
            num_beams=params.beam_size,
            num_return_sequences=params.num_hypotheses,
            early_stopping=params.options.early_stopping,
            length_penalty=params.options.length_penalty,
            max_length=params.max_new_tokens + 1,  # theirs counts the start token
            do_sample=False,
            return_dict_in_generate=True,
            output_scores=True,
        )
        answers = []
        for row, score in zip(output.sequences[:, 1:].tolist(), output.sequences_scores.tolist(), strict=True):
            stop = next((place for place, token in enumerate(row) if token in (self.end, self.pad)), len(row))
            answers.append((row[:stop], score))
        return answers


@pytest.fixture(scope="module", params=MODELS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """Return a random model that ends some of its sentences early."""
    torch.manual_seed(7)
    folder: Path = tmp_path_factory.mktemp("marian")
    saved = save_marian(folder, MODELS[request.param])
    with torch.no_grad():
        saved.reference.final_logits_bias[0, 0] += 1.0
    saved.reference.save_pretrained(folder)
    return Pair(saved)


def _sources(pair: Pair) -> list[list[int]]:
    random = np.random.default_rng(3)
    lengths = random.integers(1, 15, NUM_SENTENCES)
    return [[*random.integers(1, 30, length).tolist(), pair.end] for length in lengths]


@pytest.mark.parametrize("early_stopping", [False, True])
@pytest.mark.parametrize("beam_size", [2, 3, 8])
def test_beam_search_equals_hugging_face_generate(pair: Pair, beam_size: int, early_stopping: bool) -> None:
    sources = _sources(pair)
    for length_penalty in PENALTIES:
        params = sentence_params(beam_size, length_penalty, LIMIT, beam_size, early_stopping)
        completions = pair.ours(sources, params)
        ours = [hypothesis for completion in completions for hypothesis in completion.hypotheses]
        theirs = pair.theirs(sources, params)
        assert [hypothesis.token_ids for hypothesis in ours] == [tokens for tokens, _ in theirs]
        np.testing.assert_allclose([each.score for each in ours], [score for _, score in theirs], atol=1e-4)


@pytest.mark.parametrize("max_new_tokens", [1, 2, 3, 20])
def test_limits_mean_the_same_as_those_of_hugging_face(pair: Pair, max_new_tokens: int) -> None:
    sources = _sources(pair)
    params = sentence_params(beam_size=4, max_new_tokens=max_new_tokens)
    completions = pair.ours(sources, params)
    theirs = pair.theirs(sources, params)
    assert [done.hypotheses[0].token_ids for done in completions] == [tokens for tokens, _ in theirs]
    np.testing.assert_allclose([done.hypotheses[0].score for done in completions], [s for _, s in theirs], atol=1e-4)
