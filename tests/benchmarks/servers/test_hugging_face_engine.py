"""The engine of the Hugging Face server."""

from pathlib import Path

import pytest
import torch
from transformers import MarianMTModel

from benchmarks.servers.hugging_face_server import HuggingFaceEngine
from benchmarks.servers.texts import END, Pieces, TargetLimit, Tokenizer
from tests.benchmarks.servers.conftest import Weights

SENTENCES = ["my old cat reads under the green house with a dog.", "the dog sees a river.", "a new house."]


def translated(engine: HuggingFaceEngine, sentences: list[Pieces], beam_size: int) -> list[Pieces]:
    found: dict[int, Pieces] = {}
    engine.translate(sentences, beam_size, found.__setitem__)
    return [found[index] for index in range(len(sentences))]


@pytest.mark.parametrize("beam_size", [1, 4])
def test_in_batches_it_generates_what_each_sentence_gives_alone(weights: Weights, beam_size: int) -> None:
    tokenizer = Tokenizer.of_checkpoint(weights.checkpoint)
    sentences = [tokenizer.encode(sentence) for sentence in SENTENCES]
    engine = HuggingFaceEngine(weights.checkpoint, TargetLimit(tokenizer.max_tokens, 0), max_batch_tokens=40)
    assert translated(engine, sentences, beam_size) == [
        generated(weights.checkpoint, sentence, beam_size, tokenizer.max_tokens) for sentence in sentences
    ]


def generated(checkpoint: Path, sentence: Pieces, beam_size: int, limit: int) -> Pieces:
    """Return the output of `generate` for a single sentence without padding."""
    model = MarianMTModel.from_pretrained(checkpoint).eval()
    engine = HuggingFaceEngine(checkpoint, TargetLimit(limit, 0))
    tokens = torch.tensor([[engine.numbers.get(piece, engine.numbers["<unk>"]) for piece in sentence]])
    with torch.inference_mode():
        [row] = model.generate(input_ids=tokens, num_beams=beam_size, do_sample=False, max_length=limit).tolist()
    names = {number: piece for piece, number in engine.numbers.items()}
    pieces = [names[token] for token in row[1:]]
    return pieces[: pieces.index(END)] if END in pieces else pieces
