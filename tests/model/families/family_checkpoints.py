"""Complete checkpoints of every family with random weights, tokenizer included, and the reference tokenizers."""

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import sentencepiece
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BartTokenizer,
    ByT5Tokenizer,
    M2M100Config,
    M2M100ForConditionalGeneration,
    M2M100Tokenizer,
    MBart50Tokenizer,
    MBartConfig,
    MBartForConditionalGeneration,
    MBartTokenizer,
    NllbTokenizer,
    PegasusConfig,
    PegasusForConditionalGeneration,
    PegasusTokenizer,
    PreTrainedModel,
    T5Config,
    T5ForConditionalGeneration,
    T5Tokenizer,
)

WORDS = tuple("a my dog cat house river reads sees builds old new green with under über Häuser the 東京".split())  # noqa: SIM905
_CHOOSE = random.Random(0)
SENTENCES = tuple(" ".join(_CHOOSE.choices(WORDS, k=7)) + "." for _ in range(300))
TEXTS = (
    "my dog sees the old house.",
    "The  green river",
    "",
    "Häuser über 東京!",
    "x-ray, 42 % <pad> of </s> it",
    "  a new\tcat ",
    "🦉 ﬁne e\N{COMBINING ACUTE ACCENT}",
)
_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
SMALL = {
    "d_model": 24,
    "encoder_layers": 2,
    "decoder_layers": 1,
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 30,
    "decoder_ffn_dim": 34,
    "max_position_embeddings": 40,
}
_SMALL_T5 = {
    "d_model": 20,
    "d_kv": 7,
    "num_heads": 3,
    "num_layers": 2,
    "num_decoder_layers": 1,
    "d_ff": 30,
    "n_positions": 40,
    "decoder_start_token_id": 0,
}

Pieces = list[tuple[str, float]]


@dataclass(frozen=True, slots=True)
class FamilyCheckpoint:
    """A checkpoint on disk, the reference's model and tokenizer, and languages in the reference's spelling."""

    folder: Path
    reference: PreTrainedModel
    tokenizer: object
    source: str
    target: str


def write_sentencepiece(path: Path) -> Pieces:
    """Write a SentencePiece model, and return its pieces with their scores, without the control pieces."""
    with path.open("wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(SENTENCES),
            model_writer=file,
            vocab_size=80,
            hard_vocab_limit=False,
            num_threads=1,
            minloglevel=2,
        )
    model = sentencepiece.SentencePieceProcessor(model_proto=path.read_bytes())
    pieces = [(model.id_to_piece(piece), model.get_score(piece)) for piece in range(model.get_piece_size())]
    return [piece for piece in pieces if piece[0] not in _SPECIAL]


def _scored(*names: str) -> Pieces:
    return [(name, 0.0) for name in names]


def _bpe(special: list[str], *, byte_level: bool) -> dict[str, object]:
    trained = Tokenizer(models.BPE(unk_token=None if byte_level else "<unk>", fuse_unk=not byte_level))
    trained.pre_tokenizer = (
        pre_tokenizers.ByteLevel(add_prefix_space=False) if byte_level else pre_tokenizers.Metaspace()
    )
    alphabet = pre_tokenizers.ByteLevel.alphabet() if byte_level else []
    trainer = trainers.BpeTrainer(
        vocab_size=320 if byte_level else 90, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    trained.train_from_iterator(SENTENCES, trainer)
    model = json.loads(trained.to_str())["model"]
    return {"vocab": model["vocab"], "merges": [tuple(merge) for merge in model["merges"]]}


def _bart(pieces: Pieces, folder: Path) -> tuple[PreTrainedModel, object]:
    tokenizer = BartTokenizer(**_bpe([*_SPECIAL, "<mask>"], byte_level=True))
    return BartForConditionalGeneration(BartConfig(vocab_size=len(tokenizer), **SMALL)), tokenizer


def _mbart(pieces: Pieces, folder: Path) -> tuple[PreTrainedModel, object]:
    tokenizer = MBartTokenizer(vocab=[*_scored(*_SPECIAL), *pieces], src_lang="en_XX", tgt_lang="de_DE")
    start = tokenizer.convert_tokens_to_ids("de_DE")
    config = MBartConfig(vocab_size=len(tokenizer), decoder_start_token_id=start, **SMALL)
    return MBartForConditionalGeneration(config), tokenizer


def _mbart50(pieces: Pieces, folder: Path) -> tuple[PreTrainedModel, object]:
    tokenizer = MBart50Tokenizer(vocab=[*_scored(*_SPECIAL), *pieces], src_lang="en_XX", tgt_lang="de_DE")
    config = MBartConfig(vocab_size=len(tokenizer), decoder_start_token_id=2, **SMALL)
    return MBartForConditionalGeneration(config), tokenizer


def _m2m100(pieces: Pieces, folder: Path) -> tuple[PreTrainedModel, object]:
    vocabulary = {piece: index for index, (piece, _) in enumerate([*_scored(*_SPECIAL), *pieces])}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), "utf-8")
    tokenizer = M2M100Tokenizer(str(folder / "vocab.json"), str(folder / "pieces.model"), src_lang="en", tgt_lang="de")
    config = M2M100Config(vocab_size=len(vocabulary) + 108, **SMALL)
    return M2M100ForConditionalGeneration(config), tokenizer


def _nllb(pieces: Pieces, folder: Path) -> tuple[PreTrainedModel, object]:
    tokenizer = NllbTokenizer(**_bpe(list(_SPECIAL), byte_level=False), src_lang="eng_Latn", tgt_lang="deu_Latn")
    config = M2M100Config(vocab_size=len(tokenizer), **SMALL)
    return M2M100ForConditionalGeneration(config), tokenizer


def _pegasus(pieces: Pieces, folder: Path) -> tuple[PreTrainedModel, object]:
    masks = [*_scored("<mask_1>", "<mask_2>"), *_scored(*(f"<unk_{index}>" for index in range(2, 103)))]
    tokenizer = PegasusTokenizer(vocab=[*_scored("<pad>", "</s>"), *masks, *_scored("<unk>"), *pieces])
    return PegasusForConditionalGeneration(PegasusConfig(vocab_size=len(tokenizer), **SMALL)), tokenizer


def _t5(pieces: Pieces, folder: Path) -> tuple[PreTrainedModel, object]:
    tokenizer = T5Tokenizer(vocab=[*_scored("<pad>", "</s>", "<unk>"), *pieces], extra_ids=3)
    tasks = {
        "summarization": {"prefix": "summarize: "},
        "translation_en_to_de": {"prefix": "the English to German: "},
        "translation_en_to_fr": {"prefix": "the English to French: "},
    }
    config = T5Config(vocab_size=len(tokenizer) + 4, task_specific_params=tasks, **_SMALL_T5)
    return T5ForConditionalGeneration(config), tokenizer


def _madlad(pieces: Pieces, folder: Path) -> tuple[PreTrainedModel, object]:
    names = _scored("<unk>", "<s>", "</s>", "<2de>", "<2fr>", "<2zh_Latn>")
    tokenizer = T5Tokenizer(vocab=[*names, *pieces], pad_token="<s>", extra_ids=0)
    config = T5Config(
        vocab_size=len(tokenizer),
        feed_forward_proj="gated-gelu",
        tie_word_embeddings=False,
        pad_token_id=1,
        eos_token_id=2,
        **_SMALL_T5,
    )
    return T5ForConditionalGeneration(config), tokenizer


def _byt5(pieces: Pieces, folder: Path) -> tuple[PreTrainedModel, object]:
    config = T5Config(vocab_size=384, feed_forward_proj="gated-gelu", **(_SMALL_T5 | {"n_positions": 90}))
    return T5ForConditionalGeneration(config), ByT5Tokenizer()


FAMILIES: Mapping[str, tuple[Callable[[Pieces, Path], tuple[PreTrainedModel, object]], str, str]] = {
    "bart": (_bart, "en", "en"),
    "mbart": (_mbart, "en_XX", "de_DE"),
    "mbart50": (_mbart50, "en_XX", "de_DE"),
    "m2m100": (_m2m100, "en", "de"),
    "nllb": (_nllb, "eng_Latn", "deu_Latn"),
    "pegasus": (_pegasus, "en", "en"),
    "t5": (_t5, "en", "de"),
    "madlad": (_madlad, "fr", "de"),
    "byt5": (_byt5, "en", "en"),
}
# The language is named nowhere in these checkpoints.
ONE_LANGUAGE = ("bart", "pegasus", "byt5")


def write_family(family: str, folder: Path, *, translates: bool = True) -> FamilyCheckpoint:
    """Write a checkpoint of a family; BART, Pegasus and ByT5 have languages only with `translates`."""
    folder.mkdir(parents=True)
    make, source, target = FAMILIES[family]
    torch.manual_seed(20170612)
    reference, tokenizer = make(write_sentencepiece(folder / "pieces.model"), folder)
    reference.train(False)
    with torch.no_grad():
        for name, parameter in reference.named_parameters():
            if parameter.requires_grad:
                is_sharp = any(part in name for part in ("q_proj", "k_proj", "embed", "shared"))
                parameter.add_(torch.randn_like(parameter) * (0.6 if is_sharp else 0.2))
    reference.save_pretrained(folder)
    tokenizer.save_pretrained(folder)  # type: ignore[attr-defined]  # all of them have it
    (folder / "pieces.model").unlink()
    if family == "madlad":
        _number_unknown(folder / "tokenizer.json", tokenizer)
    if family in ONE_LANGUAGE and translates:
        path = folder / "tokenizer_config.json"
        settings = json.loads(path.read_text("utf-8")) | {"source_lang": source, "target_lang": target}
        path.write_text(json.dumps(settings), "utf-8")
    return FamilyCheckpoint(folder, reference, tokenizer, source, target)


def _number_unknown(path: Path, tokenizer: object) -> None:
    """Make 0 the unknown token of a file. The class that saved it always writes 2, in MADLAD-400 the end."""
    content = json.loads(path.read_text("utf-8"))
    content["model"]["unk_id"] = 0
    path.write_text(json.dumps(content), "utf-8")
    tokenizer._tokenizer = Tokenizer.from_file(str(path))  # type: ignore[attr-defined]  # what the class wraps
