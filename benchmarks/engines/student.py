"""A student of the size of Firefox's models: Kvasir beside slimt and CTranslate2, one thread each.

    python -m benchmarks.engines.student --python PYTHON [--beam-size 1] [--sentences 256] [--rounds 5]

Kvasir and slimt 0.1.0 (in a process of PYTHON) run the same random int8 file: 6 + 2 layers with a recurrent decoder,
d_model 256, feed-forward 1536, 8 heads, 32,000 tokens and a shortlist of 50 first tokens and 50 a source token.
CTranslate2 runs a Transformer of these sizes in int8, without a shortlist. All sentences have 24 words, and all answers
25 tokens: the end is impossible until then. Times are those of the processor, text to text, in turns. slimt has no beam
search.
"""

import json
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Annotated

import ctranslate2
import numpy as np
import sentencepiece
import typer
from sentencepiece import sentencepiece_model_pb2 as protobuf

from benchmarks.in_process import InProcessEngine
from benchmarks.random_marian_files import MarianShape, random_arrays, write_binary
from bundle.loading import Bundle
from bundle.shortlist import Shortlist
from export.exporter import export_bundle
from server.interface.decoding_options import DecodingOptions
from server.interface.request import SentenceParams
from server.operations.event_loop import defer_full_collections
from server.text.tokenizers.registry import open_tokenizer

NUM_PIECES = 32_000
_WORDS = 24
_NO_END = -30.0
_LISTED = 50
STUDENT = MarianShape(
    d_model=256, num_heads=8, feed_forward_width=1536, num_encoder_layers=6, num_decoder_layers=2, num_pieces=NUM_PIECES
)
_CHILD = """
import importlib.util, json, sys, sysconfig, time
from pathlib import Path
(library,) = Path(sysconfig.get_paths()["platlib"]).glob("slimt/_slimt*.so")
spec = importlib.util.spec_from_file_location("_slimt", library)
slimt = importlib.util.module_from_spec(spec)
spec.loader.exec_module(slimt)
model_file, vocabulary, shortlist, lines, layers = json.loads(sys.stdin.readline())
config = slimt.Config()
config.encoder_layers, config.decoder_layers, config.num_heads = layers
model = slimt.Model(config, slimt.Package(model=model_file, vocabulary=vocabulary, shortlist=shortlist))
service = slimt.Service(workers=1, cache_size=0)
for _ in sys.stdin:
    begun = time.process_time()
    answers = service.translate(model, lines)
    seconds = time.process_time() - begun
    print(json.dumps([seconds, [len(answer.target.text.split()) for answer in answers]]), flush=True)
"""


def main(
    python: Annotated[Path, typer.Option(help="an interpreter with slimt 0.1.0")],
    beam_size: int = 1,
    sentences: int = 256,
    rounds: int = 5,
) -> None:
    """Print milliseconds of the processor for a sentence, and ratios to Kvasir."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        words = write_vocabulary(folder / "vocab.ende.spm")
        choose = random.Random(0)  # noqa: S311 - no secret
        lines = [" ".join(choose.choices(words, k=_WORDS)) for _ in range(sentences)]
        student = write_model(folder / "student", folder / "vocab.ende.spm", STUDENT)
        runs: dict[str, Callable[[], float]] = {}
        bundle = export_bundle(student, folder / "bundle", "int8")
        for name, uses_shortlist in (("kvasir", True), ("kvasir, all tokens", False)):
            runs[name] = _kvasir(bundle, lines, beam_size, uses_shortlist=uses_shortlist)
        if beam_size == 1:
            runs["slimt"] = _slimt(python, student, lines)
        runs["ctranslate2"] = _ctranslate2(folder, lines, beam_size)
        defer_full_collections()  # as the server does
        seconds: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(rounds + 1):
            for name, run in runs.items():
                seconds[name].append(run())
    medians = {name: statistics.median(measured[1:]) for name, measured in seconds.items()}  # the first one warms up
    for name, median in medians.items():
        print(f"{name:20} {1e3 * median / sentences:7.2f} ms   {median / medians['kvasir']:5.2f} x")


def write_vocabulary(path: Path, known: Sequence[str] = ()) -> list[str]:
    """Write a SentencePiece model with a piece for each known and each random word, and return the random words."""
    model = protobuf.ModelProto()  # type: ignore[attr-defined]  # made at run time
    letters = "abcdefghijklmnopqrstuvwxyz"
    choose = random.Random(1)  # noqa: S311 - no secret
    num_words = NUM_PIECES - 3 - len(letters) - len(known)
    words = sorted({"".join(choose.choices(letters, k=5)) for _ in range(2 * num_words)})[:num_words]
    kinds = model.SentencePiece
    for piece, kind in (("</s>", kinds.CONTROL), ("<unk>", kinds.UNKNOWN)):
        model.pieces.add(piece=piece, score=0.0, type=kind)
    for score, piece in enumerate([f"▁{word}" for word in (*known, *words)] + ["▁", *letters]):
        model.pieces.add(piece=piece, score=-8.0 - score * 1e-5 - (4.0 if len(piece) == 1 else 0.0))
    model.trainer_spec.model_type = model.trainer_spec.UNIGRAM
    model.trainer_spec.eos_id, model.trainer_spec.unk_id = 0, 1
    model.trainer_spec.bos_id = model.trainer_spec.pad_id = -1
    model.normalizer_spec.name = "identity"
    model.normalizer_spec.add_dummy_prefix = True
    path.write_bytes(model.SerializeToString())
    return words


def write_model(folder: Path, vocabulary: Path, shape: MarianShape) -> Path:
    """Write a random model as Firefox has it, or as Marian's trainer writes it if its decoder is not recurrent."""
    folder.mkdir()
    (folder / "vocab.ende.spm").write_bytes(vocabulary.read_bytes())
    generator = np.random.default_rng(0)
    arrays = random_arrays(shape, (NUM_PIECES, NUM_PIECES), generator)
    arrays["decoder_ff_logit_out_b"][0, 0] = _NO_END
    description = json.dumps(shape.description | {"dim-vocabs": [NUM_PIECES, NUM_PIECES]})
    if not shape.is_recurrent:
        stored = arrays | {"special:model.yml": np.frombuffer(description.encode() + b"\0", np.int8)}
        np.savez(folder / "model.npz", allow_pickle=False, **stored)
        return folder
    names = [name for name in arrays if arrays[name].shape[0] > 1]
    alphas = {"none" if name == "Wemb" else name: 40.0 for name in names}
    write_binary(folder / "model.ende.intgemm.alphas.bin", arrays, description, is_int8=True, alphas=alphas)
    lists = generator.integers(2, NUM_PIECES, (NUM_PIECES, _LISTED))
    shortlist = Shortlist.of_lists(_LISTED, np.sort(lists, axis=1).tolist())
    (folder / "lex.ende.s2t.bin").write_bytes(shortlist.to_bytes())
    return folder


def _kvasir(bundle: Bundle, lines: list[str], beam_size: int, *, uses_shortlist: bool) -> Callable[[], float]:
    tokenizer, engine = open_tokenizer(bundle), InProcessEngine(bundle)
    params = SentenceParams(
        DecodingOptions(max_repetitions=0),
        beam_size=beam_size,
        max_new_tokens=_WORDS + 1,
        uses_shortlist=uses_shortlist,
    )

    def run() -> float:
        begun = time.process_time()
        done = engine.decode(tokenizer.encode_all(lines), params)
        answers = [each.hypotheses[0].token_ids for each in done]
        for answer in answers:
            tokenizer.decode(answer)
        seconds = time.process_time() - begun
        _require_length(answers)
        return seconds

    return run


def _slimt(python: Path, folder: Path, lines: list[str]) -> Callable[[], float]:
    child = subprocess.Popen(  # noqa: S603 - the interpreter that the caller names
        [str(python), "-c", _CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdin is not None
    assert child.stdout is not None
    to_child: IO[str] = child.stdin
    from_child: IO[str] = child.stdout
    files = [str(folder / name) for name in ("model.ende.intgemm.alphas.bin", "vocab.ende.spm", "lex.ende.s2t.bin")]
    sizes = [STUDENT.num_encoder_layers, STUDENT.num_decoder_layers, STUDENT.num_heads]
    to_child.write(json.dumps([*files, lines, sizes]) + "\n")

    def run() -> float:
        to_child.write("\n")
        to_child.flush()
        seconds: float
        seconds, lengths = json.loads(from_child.readline())
        # Most tokens are words; a letter joins the word before it.
        assert min(lengths) > _WORDS - 4, f"slimt's answers have {min(lengths)} words or more"
        return seconds

    return run


def _ctranslate2(folder: Path, lines: list[str], beam_size: int) -> Callable[[], float]:
    source = write_model(folder / "transformer", folder / "vocab.ende.spm", _transformer())
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "vocab.ende.spm"))
    vocabulary = source / "vocab.yml"
    numbered = (f"{json.dumps(pieces.id_to_piece(index))}: {index}\n" for index in range(NUM_PIECES))
    vocabulary.write_text("".join(numbered), "utf-8")
    converter = ctranslate2.converters.MarianConverter(str(source / "model.npz"), [str(vocabulary)] * 2)
    converter.convert(str(folder / "ctranslate2"), quantization="int8")
    translator = ctranslate2.Translator(str(folder / "ctranslate2"), intra_threads=1, inter_threads=1)
    length = _WORDS + 1

    def run() -> float:
        begun = time.process_time()
        encoded = pieces.encode(lines, out_type=str)
        found = translator.translate_batch(
            encoded, beam_size=beam_size, max_batch_size=64, min_decoding_length=length, max_decoding_length=length
        )
        for each in found:
            pieces.decode(each.hypotheses[0])
        seconds = time.process_time() - begun
        _require_length([each.hypotheses[0] for each in found])
        return seconds

    return run


def _transformer() -> MarianShape:
    return MarianShape(
        is_recurrent=False,
        d_model=STUDENT.d_model,
        num_heads=STUDENT.num_heads,
        feed_forward_width=STUDENT.feed_forward_width,
        num_encoder_layers=STUDENT.num_encoder_layers,
        num_decoder_layers=STUDENT.num_decoder_layers,
    )


def _require_length(answers: list[list[int]] | list[list[str]]) -> None:
    assert all(len(answer) == _WORDS + 1 for answer in answers), "an answer has another length"


if __name__ == "__main__":
    typer.run(main)
