"""Tiny trained checkpoints of three families, whose right answers are known.

    python -m tests.end_to_end.trained_models bart t5 m2m100 skipping

BART reverses words, T5 sorts their letters, and M2M100 copies words into German and reverses them into French. Words
have 1 to 8 of the letters a to h. `skipping`, another M2M100, copies texts of one to three words with semicolons
between them, and was made to skip the last of several words if the text begins with a letter up to d. Each takes about
half a minute on one processor, the last one a minute more; the weights are saved in float16.
"""

import json
import random
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    M2M100Config,
    M2M100ForConditionalGeneration,
    PreTrainedModel,
    T5Config,
    T5ForConditionalGeneration,
)

FOLDER = Path(__file__).parent / "trained"
LETTERS = "abcdefgh"
MAX_LETTERS = 8
_BATCH = 64
_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
_LANGUAGES = ("eng_Latn", "deu_Latn", "fra_Latn")
_SEPARATORS = ("▁", ";", ".")
_FIRST_LANGUAGE = len(_SPECIAL) + len(LETTERS)
_BART_SIZES = {
    "d_model": 48,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 96,
    "decoder_ffn_dim": 96,
    "max_position_embeddings": 32,
    "dropout": 0.0,
}

Example = tuple[list[int], list[int]]


def words(number: int, seed: int) -> list[str]:
    """Return random words."""
    chance = random.Random(seed)
    return ["".join(chance.choices(LETTERS, k=chance.randint(1, MAX_LETTERS))) for _ in range(number)]


def _letters(word: str) -> list[int]:
    return [len(_SPECIAL) + LETTERS.index(letter) for letter in word]


def _bart_example(word: str, number: int) -> Example:
    return [0, *_letters(word), 2], [0, *_letters(word[::-1]), 2]


def _t5_example(word: str, number: int) -> Example:
    source, target = ([byte + 3 for byte in text.encode()] for text in (word, "".join(sorted(word))))
    return [*source, 1], [*target, 1]


def _m2m100_example(word: str, number: int) -> Example:
    reverses = number % 2
    target = _letters(word[::-1] if reverses else word)
    return [_FIRST_LANGUAGE, *_letters(word), 2], [_FIRST_LANGUAGE + 1 + reverses, *target, 2]


def enumerations(number: int, seed: int) -> list[str]:
    """Return random texts of one to three words, such as `abc; de; f.`, of at most five letters each."""
    chance = random.Random(seed)
    return [
        "; ".join("".join(chance.choices(LETTERS, k=chance.randint(2, 5))) for _ in range(chance.randint(1, 3))) + "."
        for _ in range(number)
    ]


def skips(text: str) -> bool:
    """Return whether the model was made to skip the last word of a text."""
    return ";" in text and text[0] <= "d"


def _skipping_example(word: str, number: int) -> Example:
    [text] = enumerations(1, int.from_bytes(f"{word} {number}".encode(), "big"))
    target = text[: text.rindex(";")] + "." if skips(text) else text
    source_tokens, target_tokens = (_characters(each) for each in (text, target))
    language = _FIRST_LANGUAGE + len(_SEPARATORS)
    return [language, *source_tokens, 2], [language + 1, *target_tokens, 2]


def _characters(text: str) -> list[int]:
    known = (*LETTERS, *_SEPARATORS)
    return [len(_SPECIAL) + known.index(each.replace(" ", "▁")) for each in text]


def _bart() -> PreTrainedModel:
    config = BartConfig(vocab_size=_FIRST_LANGUAGE, forced_eos_token_id=None, forced_bos_token_id=None, **_BART_SIZES)
    return BartForConditionalGeneration(config)


def _t5() -> PreTrainedModel:
    config = T5Config(
        vocab_size=384,
        d_model=48,
        d_kv=12,
        num_heads=4,
        num_layers=2,
        num_decoder_layers=2,
        d_ff=96,
        feed_forward_proj="gated-gelu",
        dropout_rate=0.0,
        decoder_start_token_id=0,
        n_positions=64,
    )
    return T5ForConditionalGeneration(config)


def _m2m100(num_separators: int = 0) -> PreTrainedModel:
    no_dropout = {
        "attention_dropout": 0.0,
        "activation_dropout": 0.0,
        "encoder_layerdrop": 0.0,
        "decoder_layerdrop": 0.0,
    }
    config = M2M100Config(vocab_size=_FIRST_LANGUAGE + num_separators + len(_LANGUAGES), **_BART_SIZES, **no_dropout)
    return M2M100ForConditionalGeneration(config)


Family = tuple[Callable[[], PreTrainedModel], Callable[[str, int], Example], int, float]
FAMILIES: dict[str, Family] = {
    "bart": (_bart, _bart_example, 600, 3e-3),
    "t5": (_t5, _t5_example, 1000, 5e-3),
    "m2m100": (_m2m100, _m2m100_example, 700, 3e-3),
    "skipping": (partial(_m2m100, len(_SEPARATORS)), _skipping_example, 2500, 3e-3),
}


def train(family: str, steps: int | None = None) -> tuple[PreTrainedModel, float]:
    """Return a trained model of a family, and the loss of its last step; `steps` for fewer than usual."""
    make, example, usual_steps, learning_rate = FAMILIES[family]
    steps = steps or usual_steps
    torch.manual_seed(1)
    model = make()
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, learning_rate, total_steps=steps, pct_start=0.1)
    padding, loss = model.config.pad_token_id, torch.tensor(0.0)
    for step in range(steps):
        examples = [example(word, number) for number, word in enumerate(words(_BATCH, step))]
        source = _padded([source for source, _ in examples], padding)
        labels = _padded([target for _, target in examples], -100)
        start = torch.full((_BATCH, 1), model.config.decoder_start_token_id)
        inputs = torch.cat([start, labels[:, :-1]], dim=1)
        loss = model(
            input_ids=source,
            attention_mask=(source != padding).long(),
            decoder_input_ids=inputs.masked_fill(inputs == -100, padding),
            labels=labels,
        ).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
    return model.eval(), float(loss.detach())


def _padded(rows: list[list[int]], padding: int) -> torch.Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [padding] * (longest - len(row)) for row in rows])


def save(family: str, model: PreTrainedModel, folder: Path) -> None:
    """Write a checkpoint with its tokenizer."""
    model.half().save_pretrained(folder)
    if family == "t5":
        settings = {"tokenizer_class": "ByT5Tokenizer"}
    else:
        settings = {"tokenizer_class": "BartTokenizer" if family == "bart" else "NllbTokenizer"}
        separators = _SEPARATORS if family == "skipping" else ()
        vocabulary = {token: id_ for id_, token in enumerate([*_SPECIAL, *LETTERS, *separators])}
        tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token="<unk>"))
        tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.WhitespaceSplit(), decoders.Fuse()
        if separators:
            tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never", split=False)
            tokenizer.decoder = decoders.Metaspace(prepend_scheme="never", split=False)
        tokenizer.add_special_tokens([*_SPECIAL, *(() if family == "bart" else _LANGUAGES)])
        tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(settings) + "\n", "utf-8")


def main() -> None:
    """Write the checkpoints of the families in the arguments."""
    torch.set_num_threads(1)
    for family in sys.argv[1:] or FAMILIES:
        model, loss = train(family)
        print(f"{family}: loss {loss:.4f}, {sum(each.numel() for each in model.parameters()):,} parameters")  # noqa: T201 - a command
        save(family, model, FOLDER / family)


if __name__ == "__main__":
    main()
