"""Options that Hugging Face `generate` has as well: equal answers and scores on the same random weights, batched."""

from collections.abc import Sequence
from dataclasses import replace
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
from tests.fakes.sentence_params import changed, sentence_params
from tests.model.random_models import SavedMarian, save_marian

NUM_SENTENCES = 6
MAX_ROWS = 64
LIMIT = 12  # tokens with the end, without the start
PLAIN = sentence_params(max_new_tokens=LIMIT, return_scores=True)
PREFIX = (5, 17, 5)

# Ours, and what the same is called there. Every one for greedy and for beams, and with requests that have another.
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
    """One checkpoint in both implementations."""

    def __init__(self, saved: SavedMarian) -> None:
        self.reference: MarianMTModel = saved.reference
        config = build_model(read_checkpoint(saved.folder)).config
        self.end, self.pad = config.eos_token_id, config.pad_token_id
        self.engine = DrivenEngine(
            EagerRunner(build_model(read_checkpoint(saved.folder)), MAX_ROWS), self.end, config.forced_eos
        )
        random = np.random.default_rng(3)
        lengths = random.integers(1, 15, NUM_SENTENCES)
        self.sources = [[*random.integers(1, 30, length).tolist(), self.end] for length in lengths]

    def ours(self, params: Sequence[SentenceParams]) -> list[list[Completion]]:
        """Return our answers to every sentence with each of these parameters, all in one batch."""
        requests = [request(source, each) for source in self.sources for each in params]
        done = self.engine.run(requests)
        return [done[number :: len(params)] for number in range(len(params))]

    def theirs(self, params: SentenceParams, options: dict[str, object]) -> list[tuple[list[int], float]]:
        """Return the answers of `generate`: tokens without start, end and padding, and the scores of beam search."""
        answers = []
        for source in self.sources:
            prompt = [self.pad, *params.target_prefix]
            output = self.reference.generate(
                input_ids=torch.tensor([source]),
                decoder_input_ids=torch.tensor([prompt]),
                num_beams=params.beam_size,
                num_return_sequences=params.num_hypotheses,
                length_penalty=params.options.length_penalty,
                max_length=len(prompt) + params.max_new_tokens,
                do_sample=False,
                return_dict_in_generate=True,
                output_scores=True,
                **options,
            )
            scores = output.sequences_scores.tolist() if params.beam_size > 1 else [float("nan")]
            for row, score in zip(output.sequences[:, 1:].tolist(), scores, strict=True):
                stop = next((place for place, token in enumerate(row) if token in (self.end, self.pad)), len(row))
                answers.append((row[:stop], score))
        return answers


@pytest.fixture(scope="module", params=[0, None], ids=["forced end", "free end"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """Return a random model that ends some of its sentences early."""
    torch.manual_seed(7)
    folder: Path = tmp_path_factory.mktemp("marian")
    saved = save_marian(folder, {"forced_eos_token_id": request.param})
    with torch.no_grad():
        saved.reference.final_logits_bias[0, 0] += 1.0
    saved.reference.save_pretrained(folder)
    return Pair(saved)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_options_give_the_answers_of_hugging_face_beside_requests_that_have_others(pair: Pair, beam_size: int) -> None:
    params = [replace(each, beam_size=beam_size, num_hypotheses=beam_size) for each, _ in OPTIONS.values()]
    plain = replace(PLAIN, beam_size=beam_size, num_hypotheses=beam_size)
    *with_options, beside = pair.ours([*params, plain])
    plain_answers = pair.theirs(plain, {})
    _assert_equal(beside, plain_answers, "plain")
    for (name, (_, options)), asked, done in zip(OPTIONS.items(), params, with_options, strict=True):
        expected = pair.theirs(asked, options)
        assert asked.target_prefix or expected != plain_answers, f"a poor test: {name} changes nothing"
        _assert_equal(done, expected, name)


def _assert_equal(completions: Sequence[Completion], expected: Sequence[tuple[list[int], float]], name: str) -> None:
    found = [hypothesis for done in completions for hypothesis in done.hypotheses]
    assert [each.token_ids for each in found] == [tokens for tokens, _ in expected], name
    if completions[0].request.params.beam_size > 1:
        np.testing.assert_allclose([each.score for each in found], [s for _, s in expected], atol=1e-4, err_msg=name)
