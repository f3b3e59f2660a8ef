"""Parity of int8 students with slimt, the engine of Firefox's models in C++.

    python -m benchmarks.quality.slimt_parity --python PYTHON [--steps 1000] [--sentences 300]

A student with 2 + 2 layers learns to replace words, and is written as an intgemm8 file with alphas. Kvasir
decodes it in int8 with scales of its own for activations, slimt 0.1.0 with the alphas, in a process of PYTHON. slimt
embeds every target token at position 0 (Transformer.cc calls transform_embedding without a start), unlike Marian. So
the student is trained that way, and Kvasir's table of target positions is changed accordingly.

Both use the same lexical shortlist, which lacks the translations of every 15th word: an engine that ignored it would
give other answers. With one vocabulary for both languages, Marian lists the tokens of the source too, and slimt does
not: Kvasir leaves them out here.
"""

import json
import random
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import onnx
import sentencepiece
import torch
import typer
from numpy.typing import NDArray
from onnx import numpy_helper
from torch import Tensor, nn

from benchmarks.in_process import InProcessEngine
from benchmarks.random_marian_files import (
    Arrays,
    MarianShape,
    write_binary,
    write_random_model,
)
from bundle import tensors as names
from bundle.loading import Bundle
from bundle.shortlist import Shortlist, read_shortlist
from export.exporter import export_bundle
from model.checkpoints.weights import build_model
from model.families.marian.description import Description
from model.families.marian.native import stored_names
from model.families.marian.tensor_files import read_tensors
from model.families.registry import read_checkpoint
from model.transformer import Transformer
from server.engine.runners.onnx import OnnxRunner, OnnxSessions
from server.engine.shortlist import ListedTokens
from server.interface.decoding_options import DecodingOptions
from server.interface.request import SentenceParams
from server.text.tokenizers.registry import open_tokenizer

_WORDS = tuple(
    first + second for first in ("ka", "lo", "mi", "nu", "pe", "so") for second in ("ra", "te", "vi", "zu", "do")
)
# Widths and the size of the vocabulary are those that intgemm accepts.
SHAPE = MarianShape(
    d_model=64,
    num_heads=8,
    feed_forward_width=128,
    num_encoder_layers=2,
    num_decoder_layers=2,
    num_pieces=48,
    words=_WORDS,
)
# The end of the sequence has the last pieces, which are letters. So every list has at least 25 tokens: Kvasir fills
# shorter ones up to 32, slimt to a multiple of eight.
_NUM_FIRST, _FIRST_OF_END = 3, 26
MIN_SHARE = 0.95
_BATCH = 32
# The package asks the network when it is imported; its extension module does not.
_CHILD = """
import importlib.util, json, sys, sysconfig
from pathlib import Path
(library,) = Path(sysconfig.get_paths()["platlib"]).glob("slimt/_slimt*.so")
spec = importlib.util.spec_from_file_location("_slimt", library)
slimt = importlib.util.module_from_spec(spec)
spec.loader.exec_module(slimt)
model_file, vocabulary, shortlist, lines, layers = json.load(sys.stdin)
config = slimt.Config()
config.encoder_layers, config.decoder_layers, config.num_heads = layers
model = slimt.Model(config, slimt.Package(model=model_file, vocabulary=vocabulary, shortlist=shortlist))
service = slimt.Service(workers=1, cache_size=0)
# One by one: padding of a batch changes rounded numbers.
print(json.dumps([service.translate(model, [line])[0].target.text for line in lines]))
"""


class _FirstPosition(nn.Module):
    def __init__(self, positions: nn.Module) -> None:
        super().__init__()
        self._positions = positions

    def forward(self, first: int, length: int) -> Tensor:
        row: Tensor = self._positions(0, 1)
        return row.expand(length, -1)


def main(
    python: Annotated[Path, typer.Option(help="an interpreter with slimt 0.1.0")],
    steps: int = 1000,
    sentences: int = 300,
) -> None:
    """Train, write, decode with both, and exit with status 1 if fewer than 95 % of the answers are equal."""
    torch.manual_seed(1)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as temporary:
        folder = write_random_model(Path(temporary) / "student", SHAPE)
        checkpoint = read_checkpoint(folder)
        model = build_model(checkpoint)
        # Small weights, so that the student learns; it is the writer that makes large ones.
        model._initialise()
        vocabulary = sentencepiece.SentencePieceProcessor(model_file=str(folder / "vocab.ende.spm"))
        _train(model, vocabulary, steps)
        lines = [source for source, _ in _pairs(random.Random(9), sentences)]  # noqa: S311 - no secret
        file = _write(model, folder, vocabulary, lines)
        shortlist = folder / "lex.ende.s2t.bin"
        shortlist.write_bytes(_shortlist(vocabulary).to_bytes())
        bundle = export_bundle(folder, Path(temporary) / "bundle", "int8")
        _fix_positions(bundle)
        theirs = _slimt(python, file, folder / "vocab.ende.spm", shortlist, lines)
        ours, unrestricted = (_ours(bundle, lines, uses_shortlist=uses_it) for uses_it in (True, False))
        expected = [target for _, target in _pairs(random.Random(9), sentences)]  # noqa: S311 - no secret
    num_equal = sum(mine == other.strip() for mine, other in zip(ours, theirs, strict=True))
    num_right = sum(mine == right for mine, right in zip(ours, expected, strict=True))
    num_changed = sum(mine != free for mine, free in zip(ours, unrestricted, strict=True))
    print(f"{num_equal} of {len(lines)} answers are equal; {num_right} of Kvasir's are right")
    print(f"the shortlist changes {num_changed} answers")
    for line, mine, other in zip(lines, ours, theirs, strict=True):
        if mine != other.strip():
            print(f"  {line!r}: {mine!r}, slimt {other!r}")
    raise typer.Exit(code=int(num_equal < MIN_SHARE * len(lines)))


def _pairs(choose: random.Random, count: int) -> list[tuple[str, str]]:
    pairs = []
    for _ in range(count):
        chosen = choose.choices(range(len(_WORDS)), k=choose.randint(1, 8))
        source = " ".join(_WORDS[index] for index in chosen)
        pairs.append((source, " ".join(_successor(_WORDS[index]) for index in chosen)))
    return pairs


def _successor(word: str) -> str:
    """Return the next word of the same length: slimt ends answers that have more tokens than the source."""
    alike = [other for other in _WORDS if len(other) == len(word)]
    return alike[(alike.index(word) + 1) % len(alike)]


def _shortlist(vocabulary: sentencepiece.SentencePieceProcessor) -> Shortlist:
    lists: list[set[int]] = [set() for _ in range(SHAPE.num_pieces)]
    lists[0] = set(range(_FIRST_OF_END, SHAPE.num_pieces))
    for index, word in enumerate(_WORDS):
        for token in vocabulary.encode(word):
            lists[token].update(vocabulary.encode(_successor(word)) if index % 15 else ())
    return Shortlist.of_lists(_NUM_FIRST, [sorted(each) for each in lists])


def _train(model: Transformer, vocabulary: sentencepiece.SentencePieceProcessor, steps: int) -> None:
    model.train()
    model.decoder.positions = _FirstPosition(model.decoder.positions)  # type: ignore[assignment]
    pad, end = model.config.pad_token_id, model.config.eos_token_id
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=steps)
    choose = random.Random(3)  # noqa: S311 - no secret
    for step in range(steps):
        pairs = _pairs(choose, _BATCH)
        sides = [[[*vocabulary.encode(text), end] for text in side] for side in zip(*pairs, strict=True)]
        source, target = (nn.utils.rnn.pad_sequence([torch.tensor(ids) for ids in side], True, pad) for side in sides)
        inputs = nn.functional.pad(target[:, :-1], (1, 0), value=pad)
        logits = model(source, source != pad, inputs)
        loss = nn.functional.cross_entropy(logits[..., :pad].flatten(0, 1), target.flatten(), ignore_index=pad)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        with torch.no_grad():
            model.encoder.embedding.weight[pad].zero_()
        if step % 50 == 49:
            print(f"step {step + 1}: loss {float(loss):.3f}", flush=True)
    model.eval()


@torch.no_grad()
def _write(
    model: Transformer, folder: Path, vocabulary: sentencepiece.SentencePieceProcessor, lines: list[str]
) -> Path:
    """Replace the model in the folder by an intgemm8 file of the trained one, with alphas measured on the sentences."""
    text = read_tensors(folder / "model.npz").description
    marian = stored_names(dict(model.named_parameters()), Description(text, "model.npz"))
    parameters = dict(model.named_parameters())
    arrays: Arrays = {}
    for ours, theirs in marian.items():
        array: NDArray[np.float32] = parameters[ours].detach().numpy()
        if theirs == "Wemb":
            arrays[theirs] = array[:-1].copy()
        elif theirs == "decoder_ff_logit_out_b":
            arrays[theirs] = array[None, :-1].copy()
        else:
            arrays[theirs] = np.ascontiguousarray(array.T) if array.ndim == 2 else array[None].copy()
    alphas = _alphas(model, marian, vocabulary, lines)
    (folder / "model.npz").unlink()
    file = folder / "model.ende.intgemm.alphas.bin"
    write_binary(file, arrays, text, is_int8=True, alphas=alphas)
    return file


def _alphas(
    model: Transformer,
    marian: dict[str, str],
    vocabulary: sentencepiece.SentencePieceProcessor,
    lines: list[str],
) -> dict[str, float]:
    largest: dict[str, float] = {}
    by_module = {id(module): name for name, module in model.named_modules()}

    def record(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        name = by_module[id(module)]
        stored = "none" if name == "output_projection" else marian[f"{name}.weight"]
        largest[stored] = max(largest.get(stored, 0.0), float(inputs[0].abs().max()))

    hooks = [module.register_forward_pre_hook(record) for module in model.modules() if isinstance(module, nn.Linear)]
    for source, target in _pairs(random.Random(8), len(lines)):  # noqa: S311 - no secret
        ids = torch.tensor([[*vocabulary.encode(source), 0]])
        inputs = torch.tensor([[model.config.pad_token_id, *vocabulary.encode(target)]])
        model(ids, torch.ones_like(ids, dtype=torch.bool), inputs)
    for hook in hooks:
        hook.remove()
    return {name: 127 / value for name, value in largest.items()}


def _fix_positions(bundle: Bundle) -> None:
    """Let the decoder embed every token at position 0."""
    graph = onnx.load(bundle.file(names.DECODER_FILE))
    (table,) = (tensor for tensor in graph.graph.initializer if tensor.name == "embed.table")
    rows = numpy_helper.to_array(table)
    table.CopyFrom(numpy_helper.from_array(np.repeat(rows[:1], len(rows), axis=0), table.name))
    onnx.save(graph, bundle.file(names.DECODER_FILE))


def _ours(bundle: Bundle, lines: list[str], *, uses_shortlist: bool) -> list[str]:
    tokenizer, sessions = open_tokenizer(bundle), OnnxSessions.open(bundle, threads=1)
    shapes = bundle.config.shapes
    shortlist = read_shortlist(bundle.file(names.SHORTLIST_FILE), shapes)
    listed = ListedTokens(shortlist, shapes.target_vocab_size, (), is_shared=False)
    engine = InProcessEngine.over(OnnxRunner(replace(sessions, listed_tokens=listed), 64, 512), bundle)
    sources = [tokenizer.encode(line) for line in lines]
    options = DecodingOptions(max_repetitions=0)
    # slimt's limit is the number of the source's tokens.
    params = [SentenceParams(options, max_new_tokens=len(source), uses_shortlist=uses_shortlist) for source in sources]
    done = engine.decode_each(sources, params)
    return [tokenizer.decode(completion.hypotheses[0].token_ids) for completion in done]


def _slimt(python: Path, file: Path, vocabulary: Path, shortlist: Path, lines: list[str]) -> list[str]:
    sizes = [SHAPE.num_encoder_layers, SHAPE.num_decoder_layers, SHAPE.num_heads]
    answer = subprocess.run(  # noqa: S603 - the interpreter that the caller names
        [str(python), "-c", _CHILD],
        input=json.dumps([str(file), str(vocabulary), str(shortlist), lines, sizes]),
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode:
        raise typer.BadParameter(f"slimt ended with status {answer.returncode}: {answer.stderr[-2000:]}")
    found: list[str] = json.loads(answer.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    typer.run(main)
