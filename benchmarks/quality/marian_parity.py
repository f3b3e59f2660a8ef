"""Parity with Marian itself on random models in its own format.

    python -m benchmarks.quality.marian_parity [--python PYTHON] [--sentences 200]

Each model is written as `.npz`, exported in float32, and decodes random sentences with Kvasir and, in a process of
PYTHON, with the package pymarian. Answers that a length limit ends are left out: limits differ. Greedy answers must be
equal. Marian's beam search loses a beam with each hypothesis that ends, Kvasir's does not: of the answers with beams,
one in twenty may have a lower score than Marian's.
"""

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.in_process import InProcessEngine
from benchmarks.random_marian_files import WORDS, MarianShape, write_random_model
from bundle.loading import Bundle
from export.exporter import export_bundle
from server.interface.decoding_options import DecodingOptions
from server.interface.request import SentenceParams, TokenIds
from server.text.tokenizers.registry import open_tokenizer

SHAPES = {
    "recurrent decoder": MarianShape(),
    "self-attention": MarianShape(is_recurrent=False, activation="swish"),
    "recurrent, pre-norm, two vocabularies": MarianShape(
        is_pre_norm=True, has_two_vocabularies=True, tied="output", decoder_feed_forward_width=40
    ),
    "self-attention, nothing tied": MarianShape(is_recurrent=False, tied="none", has_two_vocabularies=True),
    "recurrent, tied inputs, no output bias": MarianShape(tied="source", embedding_steps="nd", has_output_bias=False),
    "self-attention, odd sizes": MarianShape(
        is_recurrent=False,
        d_model=40,
        num_heads=8,
        feed_forward_width=33,
        decoder_feed_forward_width=17,
        num_encoder_layers=1,
        num_decoder_layers=3,
        num_pieces=51,
    ),
    "recurrent, odd sizes": MarianShape(
        d_model=24, num_heads=1, feed_forward_width=7, num_encoder_layers=6, num_decoder_layers=1, num_pieces=53
    ),
}
LIMIT_FACTOR = 3
TOLERANCE = 1e-4
MAX_WORSE = (0.0, 0.05)  # greedily, with beams
_CHILD = """
import json, pymarian, sys
arguments, lines = json.load(sys.stdin)
translator = pymarian.Translator(arguments)
answers = translator.translate("\\n".join(lines))
print(json.dumps(answers.split("\\n") if isinstance(answers, str) else list(answers)))
"""


def main(
    python: Annotated[Path, typer.Option(help="an interpreter with pymarian")] = Path(sys.executable),
    sentences: int = 200,
) -> None:
    """Compare all shapes, greedily and with four beams; exit with status 1 after a mistake."""
    mistakes = 0
    for name, shape in SHAPES.items():
        with tempfile.TemporaryDirectory() as temporary:
            folder = write_random_model(Path(temporary) / "model", shape, seed=3)
            bundle = export_bundle(
                folder, Path(temporary) / "bundle", "float32", source_languages=["en"], target_languages=["de"]
            )
            for beam_size in (1, 4):
                mistakes += _compare(f"{name}, beam {beam_size}", folder, bundle, beam_size, sentences, python)
    raise typer.Exit(code=min(mistakes, 1))


def _compare(label: str, folder: Path, bundle: Bundle, beam_size: int, num_sentences: int, python: Path) -> int:
    choose = random.Random(5)  # noqa: S311 - no secret
    lines = [" ".join(choose.choices(WORDS, k=choose.randint(1, 12))) for _ in range(num_sentences)]
    tokenizer, engine = open_tokenizer(bundle), InProcessEngine(bundle)
    sources = [tokenizer.encode(line) for line in lines]
    theirs = [answer.split() for answer in _marian(folder, lines, beam_size, python)]
    pieces: dict[str, int] = json.loads(
        next(path for name in ("target_vocab.json", "vocab.json") if (path := bundle.file(name)).is_file()).read_text()
    )
    params = [
        SentenceParams(
            DecodingOptions(length_penalty=1.0, max_repetitions=0),
            beam_size=beam_size,
            max_new_tokens=LIMIT_FACTOR * len(source),
        )
        for source in sources
    ]
    done = engine.decode_each(sources, params)
    num_compared = num_equal = num_better = 0
    worse: list[str] = []
    for source, line, completion, answer in zip(sources, lines, done, theirs, strict=True):
        tokens = list(completion.hypotheses[0].token_ids)
        expected = [pieces[piece] for piece in answer]
        if max(len(tokens), len(expected)) >= LIMIT_FACTOR * len(source) - 1:
            continue
        num_compared += 1
        if tokens == expected:
            num_equal += 1
            continue
        ours, marians = (_score(engine, bundle, source, each) for each in (tokens, expected))
        if beam_size > 1 and ours >= marians - TOLERANCE:
            num_better += 1
        else:
            worse.append(line)
    print(f"{label}: {num_equal} of {num_compared} equal, {num_better} with a higher score, {len(worse)} others")
    for line in worse[:3]:
        print(f"  {line}")
    return len(worse) > MAX_WORSE[beam_size > 1] * num_compared


def _marian(folder: Path, lines: list[str], beam_size: int, python: Path) -> list[str]:
    vocabularies = sorted(folder.glob("*vocab*.spm"))
    options = {
        "models": folder / "model.npz",
        "vocabs": f"{vocabularies[0]} {vocabularies[-1]}",
        "beam-size": beam_size,
        "normalize": 1,
        "mini-batch": 1,
        "maxi-batch": 1,
        "max-length-factor": LIMIT_FACTOR,
        "cpu-threads": 1,
        "log-level": "error",
    }
    arguments = " ".join(f"--{name} {setting}" for name, setting in options.items())
    arguments += " --quiet-translation --no-spm-decode"
    # An error of Marian ends its process.
    answer = subprocess.run(  # noqa: S603 - the interpreter that the caller names
        [str(python), "-c", _CHILD], input=json.dumps([arguments, lines]), capture_output=True, text=True, check=True
    )
    found: list[str] = json.loads(answer.stdout.splitlines()[-1])
    return found


def _score(engine: InProcessEngine, bundle: Bundle, source: TokenIds, tokens: list[int]) -> float:
    """Return the log-probability of an answer and its end, divided by their number."""
    forced = (*tokens, bundle.config.special_tokens.end_of_sequence)
    options = DecodingOptions(return_scores=True, max_repetitions=0)
    params = SentenceParams(options, max_new_tokens=len(forced), forced_target=forced)
    return engine.decode([source], params)[0].hypotheses[0].log_probability / len(forced)


if __name__ == "__main__":
    typer.run(main)
