"""Argos packages with `bpe.model`, from text to text: CTranslate2 with sacremoses is what Argos Translate runs."""

import json
import shutil
from itertools import chain
from pathlib import Path

import ctranslate2
import pytest
from sacremoses import MosesDetokenizer

from benchmarks.in_process import InProcessEngine
from export.exporter import export_bundle
from server.interface.decoding_options import DecodingOptions
from server.interface.request import SentenceParams
from server.text.tokenizers.registry import open_tokenizer
from tests.model.families.ctranslate2.conversions import convert, write_checkpoint_of
from tests.server.text.tokenizers.bpe_codes import apply, file_of, learn, moses_words

_TEXTS = ("The old house sees a river.", "My dog (the green one) reads & builds.", "It's 3,000 rivers, “new” ones!")


def _write_package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Write a package of a random model, and return its merges."""
    convert(write_checkpoint_of("marian", folder / "checkpoint"), folder / "model", None, monkeypatch)
    shutil.rmtree(folder / "checkpoint")
    for name in ("source.spm", "target.spm"):
        (folder / "model" / name).unlink()
    path = folder / "model" / "shared_vocabulary.json"
    tokens: list[str] = json.loads(path.read_text("utf-8"))
    words = [word for text in _TEXTS for word in moses_words(text, "en")]
    merges = learn(words, 30, ends_join_symbols=True)
    pieces = dict.fromkeys(chain.from_iterable(apply(word, merges, ends_join_symbols=True) for word in words))
    # In the place of the tokens that the random model has.
    places = [index for index, token in enumerate(tokens) if token not in ("</s>", "<unk>", "<pad>")]
    for place, piece in zip(places, pieces, strict=False):
        tokens[place] = piece
    path.write_text(json.dumps(tokens), "utf-8")
    config = json.loads((folder / "model" / "config.json").read_text("utf-8"))
    (folder / "model" / "config.json").write_text(json.dumps(config | {"add_source_eos": True}))
    (folder / "bpe.model").write_bytes(file_of(merges, ends_join_symbols=True))
    (folder / "metadata.json").write_text(json.dumps({"from_code": "en", "to_code": "de"}))
    return merges


def test_a_package_with_bpe_gives_the_texts_that_argos_translate_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "package"
    package.mkdir()
    merges = _write_package(package, monkeypatch)
    bundle = export_bundle(package, tmp_path / "bundle", "float32")
    assert bundle.config.tokenizer.kind == "moses_bpe"
    tokenizer, engine = open_tokenizer(bundle), InProcessEngine(bundle)
    reference = ctranslate2.Translator(str(package / "model"), compute_type="float32", intra_threads=1)
    options = DecodingOptions(max_repetitions=0, early_stopping=True)
    params = SentenceParams(options, beam_size=4, max_new_tokens=12)
    answers = []
    for text in _TEXTS:
        pieces = [piece for word in moses_words(text, "en") for piece in apply(word, merges, ends_join_symbols=True)]
        (answer,) = reference.translate_batch([pieces], beam_size=4, max_decoding_length=12)
        words = " ".join(answer.hypotheses[0]).replace("@@ ", "").removesuffix("@@").split(" ")
        (completion,) = engine.decode([tokenizer.encode(text)], params)
        answers.append(tokenizer.decode(completion.hypotheses[0].token_ids))
        assert answers[-1] == MosesDetokenizer("de").detokenize(words)
    assert len(set(answers)) > 1
    assert all(answers)
