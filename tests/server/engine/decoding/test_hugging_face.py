"""Beam search and the options of Hugging Face `generate`: equal answers and scores on the same random weights."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
import torch
from transformers import MarianMTModel

from model.checkpoints.weights import build_model
from model.families.registry import read_checkpoint
from server.interface.request import Completion, SentenceParams
from tests.fakes.eager_runner import EagerRunner
from tests.fakes.engine import DrivenEngine, request
from tests.fakes.sentence_params import changed, sentence_params
from tests.model.random_models import SavedMarian, save_marian

NUM_SENTENCES = 8
MAX_ROWS = 64
LIMIT = 12  # tokens with the end, without the start
PLAIN = sentence_params(max_new_tokens=LIMIT, return_scores=True)
PREFIX = (5, 17, 5)
NO_OPTIONS: Mapping[str, object] = MappingProxyType({})
PENALTIES = (-0.5, 0.6, 2.0)

# Whether the last token that the limit allows must be the end is a setting of the checkpoint.
MODELS: dict[str, dict[str, object]] = {
    "forced end": {"forced_eos_token_id": 0},
    "free end": {"forced_eos_token_id": None, "decoder_layers": 2},
}

# Ours, and what the same is called there. Every one for greedy and for beams, and beside requests that have another.
OPTIONS: dict[str, tuple[SentenceParams, dict[str, object]]] = {
    "repetition penalty": (changed(PLAIN, repetition_penalty=1.7), {"repetition_penalty": 1.7}),
    "repetition encouraged": (changed(PLAIN, repetition_penalty=0.6), {"repetition_penalty": 0.6}),
    "no repeated tokens": (changed(PLAIN, no_repeat_ngram_size=1), {"no_repeat_ngram_size": 1}),
    "no repeated bigrams": (changed(PLAIN, no_repeat_ngram_size=2), {"no_repeat_ngram_size": 2}),
    "no repeated trigrams": (changed(PLAIN, no_repeat_ngram_size=3), {"no_repeat_ngram_size": 3}),
    "suppressed tokens": (changed(PLAIN, suppress_tokens=(3, 25, 37)), {"suppress_tokens": [3, 25, 37]}),
    "suppressed phrases": (
        replace(PLAIN, suppress_phrases=((9,), (25, 25), (37, 37, 37))),
        {"bad_words_ids": [[9], [25, 25], [37, 37, 37], [30]]},  # 30 is the padding, which it suppresses anyway
    ),
    "a minimal length": (replace(PLAIN, min_new_tokens=7), {"min_new_tokens": 7}),
    "a target prefix": (replace(PLAIN, target_prefix=PREFIX), {}),
    "all of them": (
        changed(
            PLAIN,
            target_prefix=PREFIX,
            repetition_penalty=1.2,
            no_repeat_ngram_size=2,
            suppress_tokens=(3,),
            min_new_tokens=4,
        ),
        {"repetition_penalty": 1.2, "no_repeat_ngram_size": 2, "suppress_tokens": [3], "min_new_tokens": 4},
    ),
}


class Pair:
    """One checkpoint in both implementations, and sentences."""

    def __init__(self, saved: SavedMarian) -> None:
        self.reference: MarianMTModel = saved.reference
        model = build_model(read_checkpoint(saved.folder))
        self.end, self.pad = model.config.eos_token_id, model.config.pad_token_id
        self._engine = DrivenEngine(EagerRunner(model, MAX_ROWS), self.end, model.config.forced_eos)
        random = np.random.default_rng(3)
        lengths = random.integers(1, 15, NUM_SENTENCES)
        self.sources = [[*random.integers(1, 30, length).tolist(), self.end] for length in lengths]

    def ours(self, params: Sequence[SentenceParams]) -> list[list[Completion]]:
        """Return our answers to every sentence with each of these parameters, all in one batch."""
        done = self._engine.run([request(source, each) for source in self.sources for each in params])
        return [done[number :: len(params)] for number in range(len(params))]

    def theirs(
        self, sources: Sequence[list[int]], params: SentenceParams, options: Mapping[str, object] = NO_OPTIONS
    ) -> list[tuple[list[int], float]]:
        """Return the hypotheses of `generate`: tokens without start, end and padding, and the scores of beam search."""
        longest = max(map(len, sources))
        tokens = torch.tensor([source + [self.pad] * (longest - len(source)) for source in sources])
        prompt = [self.pad, *params.target_prefix]
        output = self.reference.generate(
            input_ids=tokens,
            attention_mask=(tokens != self.pad).long(),
            decoder_input_ids=torch.tensor([prompt] * len(sources)),
            num_beams=params.beam_size,
            num_return_sequences=params.num_hypotheses,
            early_stopping=params.options.early_stopping,
            length_penalty=params.options.length_penalty,
            max_length=len(prompt) + params.max_new_tokens,  # theirs counts the start token
            do_sample=False,
            return_dict_in_generate=True,
            output_scores=True,
            **options,
        )
        rows = output.sequences[:, 1:].tolist()
        scores = output.sequences_scores.tolist() if params.beam_size > 1 else [float("nan")] * len(rows)
        stops = (next((at for at, token in enumerate(row) if token in (self.end, self.pad)), len(row)) for row in rows)
        return [(row[:stop], score) for row, stop, score in zip(rows, stops, scores, strict=True)]


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


@pytest.mark.parametrize("early_stopping", [False, True])
@pytest.mark.parametrize("beam_size", [2, 3, 8])
def test_beam_search_equals_hugging_face_generate(pair: Pair, beam_size: int, early_stopping: bool) -> None:
    for length_penalty in PENALTIES:
        params = sentence_params(beam_size, length_penalty, LIMIT, beam_size, early_stopping)
        [found] = pair.ours([params])
        _assert_equal(found, pair.theirs(pair.sources, params), str(length_penalty))


@pytest.mark.parametrize("max_new_tokens", [1, 2, 3, 20])
def test_limits_mean_the_same_as_those_of_hugging_face(pair: Pair, max_new_tokens: int) -> None:
    params = sentence_params(beam_size=4, max_new_tokens=max_new_tokens)
    [found] = pair.ours([params])
    _assert_equal(found, pair.theirs(pair.sources, params), str(max_new_tokens))


@pytest.mark.parametrize("beam_size", [1, 3])
def test_options_give_the_answers_of_hugging_face_beside_requests_that_have_others(pair: Pair, beam_size: int) -> None:
    params = [replace(each, beam_size=beam_size, num_hypotheses=beam_size) for each, _ in OPTIONS.values()]
    plain = replace(PLAIN, beam_size=beam_size, num_hypotheses=beam_size)
    *with_options, beside = pair.ours([*params, plain])
    plain_answers = pair.theirs(pair.sources, plain)
    _assert_equal(beside, plain_answers, "plain")
    for (name, (_, options)), asked, done in zip(OPTIONS.items(), params, with_options, strict=True):
        # Alone: penalties of `generate` count the padding of a source.
        expected = [answer for source in pair.sources for answer in pair.theirs([source], asked, options)]
        assert asked.target_prefix or expected != plain_answers, f"a poor test: {name} changes nothing"
        _assert_equal(done, expected, name)


def _assert_equal(completions: Sequence[Completion], expected: Sequence[tuple[list[int], float]], name: str) -> None:
    found = [hypothesis for done in completions for hypothesis in done.hypotheses]
    assert [each.token_ids for each in found] == [tokens for tokens, _ in expected], name
    if completions[0].request.params.beam_size > 1:
        np.testing.assert_allclose([each.score for each in found], [s for _, s in expected], atol=1e-4, err_msg=name)
