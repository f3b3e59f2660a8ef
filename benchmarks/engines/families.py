"""Kvasir beside CTranslate2 in int8, on random weights of the sizes of well-known models of other families.

    python -m benchmarks.engines.families [--family bart-base] [--repetitions 5] [--search greedy]

Each model is made by Hugging Face's implementation, exported by Kvasir and converted by CTranslate2's converter. The
token that ends a sequence has no weights, so that every answer has --tokens tokens.
"""

import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, get_args

import torch
import typer
from ctranslate2.converters import TransformersConverter
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    M2M100Config,
    M2M100ForConditionalGeneration,
    PreTrainedModel,
    T5Config,
    T5ForConditionalGeneration,
)
from transformers.utils.logging import disable_progress_bar

from benchmarks.engines.engines import EngineOptions, select_engines
from benchmarks.engines.measuring import Procedure, measure
from benchmarks.engines.models import Conversions, Model
from benchmarks.engines.report import render
from benchmarks.engines.results import Comparison
from benchmarks.machine import describe_machine, usable_cpus
from benchmarks.progress import log_progress
from benchmarks.workloads import Search, forced_workload
from bundle import tensors as names
from bundle.loading import save_manifest
from bundle.manifest import TokenizerDescription
from export.exporter import describe_bundle, export_decoder, export_encoder
from model.checkpoints.weights import build_model
from model.families.registry import read_checkpoint


def _bart_base() -> PreTrainedModel:
    sizes = {"vocab_size": 50_265, "d_model": 768, "encoder_layers": 6, "decoder_layers": 6}
    config = BartConfig(**sizes, encoder_ffn_dim=3072, decoder_ffn_dim=3072, forced_eos_token_id=None)
    # The converter expects this setting of older releases of transformers.
    config.normalize_before = False
    config.encoder_attention_heads = config.decoder_attention_heads = 12
    return BartForConditionalGeneration(config)


def _t5_base() -> PreTrainedModel:
    return T5ForConditionalGeneration(
        T5Config(vocab_size=32_128, d_model=768, d_kv=64, d_ff=3072, num_layers=12, num_heads=12)
    )


def _m2m100(vocab_size: int) -> PreTrainedModel:
    return M2M100ForConditionalGeneration(M2M100Config(vocab_size=vocab_size, forced_eos_token_id=None))


FAMILIES: Mapping[str, Callable[[], PreTrainedModel]] = {
    "bart-base": _bart_base,
    "t5-base": _t5_base,
    "m2m100-418m": lambda: _m2m100(128_112),
    "nllb-600m": lambda: _m2m100(256_206),
}


class _Tokens:
    """A tokenizer for the converter: every token is its number."""

    special_tokens_map: Mapping[str, object] = {}
    num_madeup_words = 0

    def __init__(self, model: PreTrainedModel) -> None:
        config = model.config
        self._size = config.vocab_size
        self.eos_token = str(config.eos_token_id)
        self.pad_token = self.unk_token = str(config.pad_token_id)
        self.bos_token = self.pad_token  # CTranslate2 needs one, and no answer has it

    def get_vocab(self) -> dict[str, int]:
        return {str(token): token for token in range(self._size)}

    def convert_ids_to_tokens(self, token: int) -> str:
        return str(token)


class _Converted(Conversions):
    """The conversions of one model."""

    def __init__(self, folder: Path, converted: Path) -> None:
        super().__init__(folder)
        self._converted = converted

    def ctranslate2(self, model: Model, precision: str) -> Path:
        """Return the model for all precisions."""
        return self._converted


def _make(name: str, folder: Path) -> tuple[Model, _Converted, int]:
    """Write a random model for both engines; return it with the size of its vocabulary."""
    torch.manual_seed(1)
    log_progress(f"making {name}")
    reference = FAMILIES[name]()
    with torch.no_grad():
        reference.get_input_embeddings().weight[reference.config.eos_token_id] = 0.0
    checkpoint, bundle, converted = folder / "checkpoint", folder / "bundle", folder / "ctranslate2"
    reference.save_pretrained(checkpoint)
    tokens = _Tokens(reference)
    del reference
    log_progress("converting it for CTranslate2")
    converter = TransformersConverter(str(checkpoint))
    converter.load_tokenizer = lambda *_, **__: tokens
    converter.convert(str(converted), quantization="int8")
    log_progress("exporting it")
    _export(checkpoint, bundle)
    (checkpoint / "vocab.json").write_text(json.dumps(tokens.get_vocab()), "utf-8")
    return Model(name, checkpoint, {"int8": bundle}), _Converted(folder, converted), len(tokens.get_vocab())


def _export(checkpoint: Path, folder: Path) -> None:
    """Write a bundle with the tokenizer that needs no files."""
    read = read_checkpoint(checkpoint)
    transformer = build_model(read)
    folder.mkdir()
    export_encoder(transformer, folder / names.ENCODER_FILE, "int8")
    export_decoder(transformer, folder / names.DECODER_FILE, "int8")
    config = describe_bundle(read, folder, "int8", checkpoint.name, read.config.pad_token_id)
    save_manifest(folder, config.model_copy(update={"tokenizer": TokenizerDescription(kind="bytes")}))


def main(
    family: Annotated[list[str] | None, typer.Option(help=f"sizes: {', '.join(FAMILIES)}; default: all")] = None,
    search: Annotated[list[str] | None, typer.Option(help=f"searches: {', '.join(get_args(Search))}")] = None,
    repetitions: Annotated[int, typer.Option(min=1)] = 5,
    sentences: Annotated[int, typer.Option(min=1)] = 128,
    tokens: Annotated[int, typer.Option(min=2, help="tokens of every answer")] = 24,
    rows: Annotated[list[int] | None, typer.Option(help="rows of a replica to try")] = None,
    max_seconds: Annotated[float, typer.Option(help="maximum seconds of an engine's repetitions")] = 180,
) -> None:
    """Measure, and print a table for each model and search."""
    disable_progress_bar()  # of saving
    wanted = list(family or FAMILIES)
    if unknown := [name for name in wanted if name not in FAMILIES]:
        raise typer.BadParameter(f"`--family` must be one of {', '.join(FAMILIES)}. Given: {', '.join(unknown)}")
    searches = [each for each in get_args(Search) if search is None or each in search]
    comparison = Comparison(
        machine=describe_machine(), options={"repetitions": str(repetitions), "sentences": str(sentences)}, workloads=[]
    )
    engines = select_engines(["kvasir:int8", "ctranslate2:int8"])
    options = EngineOptions(usable_cpus(), rows or [32, 64], {})
    for name in wanted:
        with tempfile.TemporaryDirectory() as temporary:
            model, conversions, vocab_size = _make(name, Path(temporary))
            procedure = Procedure(repetitions, max_seconds, sentences // 4, [], Path(temporary) / "logs", 1800)
            for each in searches:
                workload = forced_workload(name, vocab_size, sentences, tokens, each)
                result = measure(workload, model, engines, conversions, options, procedure, None)
                comparison.workloads.append(result)
    print(render(comparison))


if __name__ == "__main__":
    typer.run(main)
