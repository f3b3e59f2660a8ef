"""Options that CTranslate2 has as well, on the same random weights."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import pytest
import torch
from transformers import MarianMTModel

from model.checkpoints.weights import build_model
from model.families.registry import read_checkpoint
from server.interface.request import Tokens
from tests.export.tiny_checkpoint import write_checkpoint
from tests.fakes.eager_runner import EagerRunner
from tests.fakes.engine import DrivenEngine, request
from tests.fakes.sentence_params import changed, sentence_params

NUM_SENTENCES, LIMIT = 8, 12
PLAIN = sentence_params(max_new_tokens=LIMIT, return_scores=True, length_penalty=0.0)


@dataclass(frozen=True, slots=True)
class Pair:
    """One checkpoint in both implementations, and some sources."""

    theirs: Any
    names: list[str]
    engine: DrivenEngine
    sources: list[list[int]]

    def translate(self, **options: object) -> list[Any]:
        """Return the answers of CTranslate2 to all sources, decoded one by one: its padding has an influence."""
        found = []
        for source in self.sources:
            tokens = [self.names[token] for token in source]
            found += self.theirs.translate_batch(
                [tokens], max_decoding_length=LIMIT, return_scores=True, length_penalty=0, **options
            )
        return found

    def ids(self, pieces: list[str]) -> Tokens:
        """Return our token ids of their tokens."""
        return tuple(self.names.index(piece) for piece in pieces)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """Return a pair without a forced end, which CTranslate2 does not support."""
    folder: Path = tmp_path_factory.mktemp("checkpoint") / "tiny"
    write_checkpoint(folder, {"forced_eos_token_id": None})
    reference = MarianMTModel.from_pretrained(folder)
    with torch.no_grad():
        reference.final_logits_bias[0, 0] += 4.5  # so that sentences end
        # Where the decoder starts with padding, CTranslate2 starts with zeros, and has no such token to generate: as
        # good as what published models have there.
        reference.get_input_embeddings().weight[reference.config.pad_token_id] = 0
        reference.final_logits_bias[0, reference.config.pad_token_id] = -1e4
    reference.save_pretrained(folder)
    converted = folder.parent / "converted"
    ctranslate2.converters.TransformersConverter(str(folder)).convert(str(converted))
    model = build_model(read_checkpoint(folder))
    config = model.config
    names = [""] * config.vocab_size
    for piece, token in _vocabulary(folder).items():
        names[token] = piece
    engine = DrivenEngine(EagerRunner(model, 32), config.eos_token_id, config.forced_eos)
    random = np.random.default_rng(3)
    sources = [
        [*random.integers(2, config.vocab_size - 1, random.integers(1, 9)).tolist(), config.eos_token_id]
        for _ in range(NUM_SENTENCES)
    ]
    return Pair(ctranslate2.Translator(str(converted), inter_threads=1, intra_threads=1), names, engine, sources)


def _vocabulary(folder: Path) -> dict[str, int]:
    content: dict[str, int] = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    return content


@pytest.mark.parametrize("num_hypotheses", [2, 5])
def test_alternatives_at_the_first_position_equal_those_of_ctranslate2(pair: Pair, num_hypotheses: int) -> None:
    found = pair.translate(beam_size=1, num_hypotheses=num_hypotheses, return_alternatives=True)
    params = changed(PLAIN, num_hypotheses=num_hypotheses, return_alternatives=True, num_token_alternatives=10)
    ours = pair.engine.run([request(source, params) for source in pair.sources])
    for theirs, done in zip(found, ours, strict=True):
        assert [tuple(each.token_ids) for each in done.hypotheses] == [pair.ids(each) for each in theirs.hypotheses]
        # They rule the end out before the first softmax, so all of theirs have the same gain.
        gains = np.array(theirs.scores) - [each.log_probability for each in done.hypotheses]
        np.testing.assert_allclose(gains, gains[0], atol=1e-4)
        assert gains[0] >= -1e-4


@pytest.mark.parametrize("coverage_penalty", [0.0, 0.2, 1.5])
@pytest.mark.parametrize("beam_size", [1, 4])
def test_the_coverage_penalty_of_a_hypothesis_is_that_of_ctranslate2(
    pair: Pair, beam_size: int, coverage_penalty: float
) -> None:
    found = pair.translate(
        beam_size=beam_size,
        num_hypotheses=beam_size,
        coverage_penalty=coverage_penalty,
        return_attention=True,
        min_decoding_length=0,
    )
    num_compared = 0
    for source, theirs in zip(pair.sources, found, strict=True):
        for pieces, score, attention in zip(theirs.hypotheses, theirs.scores, theirs.attention, strict=True):
            tokens = pair.ids(pieces)
            if len(tokens) == LIMIT:
                continue  # ended by the limit: without the end that we count
            params = sentence_params(
                forced_target=(*tokens, source[-1]),
                length_penalty=0.0,
                coverage_penalty=coverage_penalty,
                return_attention=True,
                alignment_heads=(0,),  # theirs is of one head of the last layer
            )
            [done] = pair.engine.run([request(source, params)])
            [hypothesis] = done.hypotheses
            assert hypothesis.details is not None
            assert hypothesis.details.attention is not None
            if tokens:
                np.testing.assert_allclose(hypothesis.details.attention, attention, atol=1e-4)
            assert hypothesis.score == pytest.approx(score, abs=1e-3)
            num_compared += 1
    assert num_compared > 2
