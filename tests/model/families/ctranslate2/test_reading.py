"""Argos packages with `bpe.model`, from text to text: CTranslate2 with sacremoses is what Argos Translate runs."""

import json
import shutil
from itertools import chain
from pathlib import Path

import ctranslate2
import pytest
import torch
from sacremoses import MosesDetokenizer

from export.checks import require_tokenizer
from export.int8.steps import rounding_of_weights
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.weights import build_model
from model.families.ctranslate2.binary import Variables, read_variables
from model.families.registry import read_checkpoint
from server.interface.decoding_options import DecodingOptions
from server.interface.request import SentenceParams
from server.text.tokenizers.registry import open_tokenizer
from tests.fakes.eager_runner import open_eagerly
from tests.model.families.ctranslate2.conversions import convert, greedy, log_probs, write_checkpoint_of
from tests.model.families.family_checkpoints import SMALL
from tests.server.text.tokenizers.bpe_codes import apply, file_of, learn, moses_words

NUM_SENTENCES, NUM_STEPS, NUM_SCORED = 80, 12, 20
# Family, source and target language of a model that has tokens for them.
FAMILIES = {
    "marian": None,
    "m2m100": ("__en__", "__de__"),
    "nllb": ("eng_Latn", "deu_Latn"),
    "t5": None,
    "madlad": None,
    "bart": None,
}
_TEXTS = ("The old house sees a river.", "My dog (the green one) reads & builds.", "It's 3,000 rivers, “new” ones!")


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("checkpoints")
    return {family: write_checkpoint_of(family, root / family) for family in FAMILIES}


@pytest.mark.parametrize(
    ("family", "quantization"),
    [*((family, None) for family in FAMILIES), ("marian", "float16"), *((f, "int8") for f in ("marian", "nllb", "t5"))],
)
def test_a_converted_model_gives_the_tokens_that_ctranslate2_gives(
    family: str,
    quantization: str | None,
    checkpoints: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = convert(checkpoints[family], tmp_path / "converted", quantization, monkeypatch)
    checkpoint = read_checkpoint(folder)
    vocabulary = _vocabulary(folder)
    # The converter gives T5's additional rows names that occur before.
    numbers = {token: index for index, token in reversed(list(enumerate(vocabulary)))}
    config, languages = checkpoint.config, FAMILIES[family]
    require_tokenizer(checkpoint, pytest.fail)
    assert checkpoint.is_quantized == (quantization == "int8")

    generator = torch.Generator().manual_seed(4)
    lengths = torch.randint(1, 12, (NUM_SENTENCES,), generator=generator).tolist()
    drawn = [torch.randint(3, len(vocabulary), (length,), generator=generator).tolist() for length in lengths]
    texts = [[numbers[vocabulary[token]] for token in text] for text in drawn]
    template = checkpoint.tokenizer.template
    sources = [[*template.before, *text, *(template.after or ())] for text in texts]
    prefix = first = None
    if languages is not None:
        source_language, target_language = (numbers[token] for token in languages)
        assert {source_language, target_language} <= set(checkpoint.languages.first_tokens.values())
        sources = [[source_language, *source] for source in sources]
        first, prefix = target_language, [[languages[1]]] * NUM_SENTENCES
    # float32 in both: the numbers of the file are compared, not the rounding of activations.
    reference = ctranslate2.Translator(str(folder), compute_type="float32", intra_threads=1)
    answers = reference.translate_batch(
        [[vocabulary[token] for token in source] for source in sources],
        target_prefix=prefix,
        beam_size=1,
        max_decoding_length=NUM_STEPS,
        max_input_length=0,
        min_decoding_length=0,
    )
    expected = [answer.hypotheses[0] for answer in answers]
    found = greedy(build_model(checkpoint), sources, first, NUM_STEPS)
    ours = [[vocabulary[token] for token in tokens] for tokens in found]
    assert len({tuple(tokens) for tokens in ours}) > 3
    assert ours == expected

    # Greedy answers of random models repeat themselves; scores of random targets show every other number.
    targets = texts[::-1][:NUM_SCORED]
    scored = reference.score_batch(
        [[vocabulary[token] for token in source] for source in sources[:NUM_SCORED]],
        [[vocabulary[token] for token in target] for target in targets],
    )
    own = log_probs(build_model(checkpoint), sources[:NUM_SCORED], targets)
    for one, other in zip(own, scored, strict=True):
        # Tables of sinusoids are rounded in a file of float16, and computed here.
        assert one == pytest.approx(other.log_probs, abs=5e-3 if quantization == "float16" else 2e-4)
    assert config.suppressed_token_ids == ((len(vocabulary),) if family == "marian" else ())


def test_small100_has_the_target_before_the_text_or_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SMALL, "encoder_layers", 12)
    monkeypatch.setitem(SMALL, "decoder_layers", 3)
    checkpoint = write_checkpoint_of("m2m100", tmp_path / "checkpoint")
    folder = convert(checkpoint, tmp_path / "converted", None, monkeypatch)
    with pytest.raises(CheckpointError, match="layers of SMaLL-100"):
        read_checkpoint(folder)
    (folder / "tokenization_small100.py").touch()
    found = read_checkpoint(folder)
    assert found.languages.source_prefix["de"] == "__de__"
    assert not found.languages.first_tokens
    assert not found.languages.source_tokens
    (checkpoint / "tokenization_small100.py").touch()
    assert found.languages == read_checkpoint(checkpoint).languages


def test_an_argos_package_is_read_from_its_archive(
    checkpoints: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "translate-en_pt-1_0"
    convert(checkpoints["marian"], package / "model", "int8", monkeypatch)
    for name in ("source.spm", "target.spm"):
        (package / "model" / name).unlink()
    config = json.loads((package / "model" / "config.json").read_text("utf-8"))
    (package / "model" / "config.json").write_text(json.dumps(config | {"add_source_eos": True}))
    shutil.copyfile(checkpoints["marian"] / "source.spm", package / "sentencepiece.model")
    metadata = {"package_version": "1.0", "from_code": "en", "to_code": "pb", "target_prefix": "▁the"}
    (package / "metadata.json").write_text(json.dumps(metadata))
    archive = Path(shutil.make_archive(str(tmp_path / "en_pb"), "zip", tmp_path, package.name))
    checkpoint = read_checkpoint(archive.rename(archive.with_suffix(".argosmodel")))

    assert (checkpoint.languages.source, checkpoint.languages.target) == (("en",), ("pt-BR",))
    vocabulary = _vocabulary(package / "model")
    assert checkpoint.languages.first_tokens == {"pt-BR": vocabulary.index("▁the")}
    assert checkpoint.tokenizer.kind == "sentencepiece"
    assert checkpoint.tokenizer.template.after == (vocabulary.index("</s>"),)
    assert checkpoint.provenance.family == "argos"
    # Rounding the steps of one format to those of the other costs less than a step of either.
    assert 0.001 < rounding_of_weights(checkpoint) < 0.02


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"type": "sbd"}, '`type` must be "translate"'),
        ({"from_code": None}, "`from_code` must be a language code"),
        ({"target_prefix": "no token"}, "`target_prefix` must be a token of the vocabulary"),
    ],
)
def test_a_wrong_package_is_an_error(
    change: dict[str, object],
    message: str,
    checkpoints: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    convert(checkpoints["marian"], tmp_path / "model", None, monkeypatch)
    shutil.copyfile(checkpoints["marian"] / "source.spm", tmp_path / "sentencepiece.model")
    (tmp_path / "metadata.json").write_text(json.dumps({"from_code": "en", "to_code": "de"} | change))
    with pytest.raises(CheckpointError, match=message):
        read_checkpoint(tmp_path)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "encoder/layer_0/self_attention/rotary_dim",
            torch.tensor(8, dtype=torch.int32),
            "not supported: .*rotary_dim",
        ),
        ("decoder/activation", torch.tensor(4, dtype=torch.int8), "activation differs"),
        ("encoder/num_heads", torch.tensor(5, dtype=torch.int16), "of width 48 has 5 heads"),
        ("encoder/num_heads", torch.tensor(0, dtype=torch.int16), "num_heads must be at least 1"),
        ("decoder/projection/weight", torch.zeros(3, 48), r"tables of shape \[3, 48\] for .* tokens"),
        ("encoder/scale_embeddings", torch.tensor(3.0), "scale_embeddings must be 1 or 6.9282. Given: 3.0"),
        ("decoder/layer_0/attention/linear_1/weight", torch.zeros(5, 48), "does not contain 2 projections"),
        ("decoder/layer_0/ffn/linear_1/weight", None, "decoder/layer_0/ffn/linear_1/weight is missing"),
        ("encoder/layer_0/ffn/linear_0/weight", torch.zeros(7, 48), "do not fit their settings"),
    ],
)
def test_a_model_of_another_architecture_is_rejected_with_the_finding(
    name: str,
    value: torch.Tensor | None,
    message: str,
    checkpoints: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = convert(checkpoints["marian"], tmp_path / "converted", None, monkeypatch)
    variables = read_variables(folder / "model.bin")
    tensors = {**variables.tensors, name: value}
    changed = {each: tensor for each, tensor in tensors.items() if tensor is not None}
    aliases = {alias: target for alias, target in variables.aliases.items() if alias != name}
    monkeypatch.setattr(
        "model.families.ctranslate2.reading.read_variables", lambda _: Variables(6, 7, changed, aliases)
    )
    with pytest.raises(CheckpointError, match=message):
        read_checkpoint(folder)


def _vocabulary(folder: Path) -> list[str]:
    tokens: list[str] = json.loads((folder / "shared_vocabulary.json").read_text("utf-8"))
    return tokens


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
    checkpoint = read_checkpoint(package)
    assert checkpoint.tokenizer.kind == "moses_bpe"
    bundle, engine = open_eagerly(checkpoint, tmp_path / "bundle", require_tokenizer(checkpoint, pytest.fail))
    tokenizer = open_tokenizer(bundle)
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
