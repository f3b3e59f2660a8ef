"""Export of a checkpoint to a bundle: read, trace, quantise, verify, then write."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path

import onnx
import torch
from torch.export import Dim

from bundle import tensors as names
from bundle.loading import Bundle, load_bundle, record_file, save_manifest
from bundle.manifest import BundleConfig, GenerationDescription, Provenance, SpecialTokens, TokenizerDescription
from bundle.shortlist import read_shortlist
from bundle.tensors import Layout, Precision
from export.checks import require_sizes, require_tokenizer, with_checked_tasks, without_second_copy
from export.graphs.external_weights import Weights
from export.graphs.layers import ScaledMatrix, describe_shapes
from export.graphs.onnx_nodes import make_optional
from export.graphs.parts_layout import export_parts
from export.graphs.ranking import Ranking
from export.graphs.step_layout import DecoderStepGraph, EncoderOnlyGraph, EncoderOutputsGraph
from export.graphs.tracing import EXAMPLE_ROWS, EXAMPLE_SOURCE_LEN, example_caches, save, traced
from export.int8.key_value_ranges import with_unit_keys_values
from export.int8.operators import add_functions
from export.int8.quantize import quantize_per_row, store_caches_in_int8
from export.int8.steps import rounding_of_weights
from export.recovery import KvasirBundle
from export.shortlist import add_shortlist
from export.staging import name_of, require_empty, staged
from export.verification.verify import verify_bundle
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.hugging_face_files import CheckpointFolder
from model.checkpoints.language_codes import language_code
from model.checkpoints.weights import shared_model
from model.config import TransformerConfig
from model.families.own import read_own_model
from model.families.registry import add_format, read_checkpoint
from model.transformer import EncoderModel, Transformer


def export_bundle(
    folder_or_hub_name: str | Path | CheckpointFolder,
    folder: Path,
    precision: Precision = "float32",
    name: str | None = None,
    report: Callable[[str], None] = lambda _: None,
    source_languages: Sequence[str] = (),
    target_languages: Sequence[str] = (),
    config_file: Path | None = None,
) -> Bundle:
    """Write the bundle of a checkpoint, a local folder or a hub name, to `folder`, which must be empty or missing.

    A bundle of a Marian model is a checkpoint, too.
    `report` receives a line for each phase. `source_languages` replace those of a checkpoint that has one code for many
    (`mul`, `roa`), and `target_languages` those of a checkpoint that names none. With a `config_file`, the checkpoint
    is the file of its weights. Raises `ExportError`, `CheckpointError` for a checkpoint that cannot be read, or
    `BundleError` for its shortlist; then nothing is written.
    """
    require_empty(folder)
    report("reading the checkpoint")
    if config_file is None:
        add_format(KvasirBundle())
        checkpoint = read_checkpoint(folder_or_hub_name, report)
    else:
        weights = folder_or_hub_name.path if isinstance(folder_or_hub_name, CheckpointFolder) else folder_or_hub_name
        checkpoint = read_own_model(config_file, Path(weights))
    if checkpoint.is_quantized and precision == "int8":
        loss = rounding_of_weights(checkpoint)
        report(f"the weights are int8 in other steps; rounding them changes products by {100 * loss:.2f} % (RMS)")
    languages = checkpoint.languages
    if source_languages:
        languages = replace(languages, source=tuple(dict.fromkeys(map(language_code, source_languages))))
    if target_languages and not languages.target:
        languages = replace(languages, target=tuple(dict.fromkeys(map(language_code, target_languages))))
    checkpoint = with_checked_tasks(replace(checkpoint, languages=languages))
    require_sizes(checkpoint.config, precision)
    if not (languages.target or checkpoint.config.is_encoder_only):
        report("no languages: the model generates texts; with --source and --target it translates")
    unknown_token_id = require_tokenizer(checkpoint, report)
    for path in checkpoint.unread_shortlists:
        report(f"{path.name} is left out: a shortlist must be binary; `kvasir shortlist` learns one from parallel text")
    if checkpoint.shortlist is not None and precision != "float16":
        read_shortlist(checkpoint.shortlist, describe_shapes(checkpoint.config))  # before a minute of work
    model = shared_model(checkpoint)
    rescaled: Transformer | None = None
    with staged(folder) as staging:
        if precision == "float16":
            assert isinstance(model, Transformer), "require_sizes rejects it"
            report("exporting the graphs")
            export_parts(model, staging, torch.float16)
        else:
            report("exporting the encoder")
            if isinstance(model, Transformer) and precision == "int8":
                rescaled = with_unit_keys_values(model)
            export_encoder(model, staging / names.ENCODER_FILE, precision, rescaled)
            if isinstance(model, Transformer):
                report("exporting the decoder step")
                export_decoder(model, staging / names.DECODER_FILE, precision, rescaled)
        for file, path in without_second_copy(checkpoint.tokenizer.files).items():
            shutil.copyfile(path, staging / file)
        for file, content in checkpoint.tokenizer.converted.items():
            (staging / file).write_bytes(content)
        report("comparing PyTorch with ONNX Runtime")
        config = describe_bundle(checkpoint, staging, precision, name or name_of(folder), unknown_token_id)
        unverified = save_manifest(staging, config)
        verify_bundle(unverified, model, report, rescaled)
        if checkpoint.shortlist is not None:
            if precision == "float16":
                report(f"{checkpoint.shortlist.name} is left out: a shortlist has no use on a GPU")
            else:
                add_shortlist(unverified, checkpoint.shortlist)
    return load_bundle(folder)


def export_encoder(
    model: Transformer | EncoderModel, file: Path, precision: Precision, rescaled: Transformer | None = None
) -> None:
    """Write the encoder graph of layout `step` in float32 or int8. `rescaled` has unit keys and values."""
    graph: EncoderOnlyGraph
    in_int8 = precision == "int8"
    if isinstance(model, EncoderModel):
        graph = EncoderOnlyGraph(model, in_int8=in_int8).eval()
    else:
        graph = EncoderOutputsGraph(rescaled or _in_ranges(model, precision), in_int8=in_int8).eval()
    rows, source_len = Dim("rows", min=1, max=2**16), Dim("source_len", min=1, max=model.config.max_source_tokens)
    tokens = torch.zeros(EXAMPLE_ROWS, EXAMPLE_SOURCE_LEN, dtype=torch.int32)
    lengths = torch.tensor([EXAMPLE_SOURCE_LEN, 3, 1], dtype=torch.int32)
    traced_model, weights = traced(
        graph,
        (tokens, lengths),
        ({0: rows, 1: source_len}, {0: rows}),
        [names.SOURCE_TOKENS, names.SOURCE_LENGTHS],
        list(encoder_outputs(model.config)),
    )
    matrices = graph.scaled_matrices
    del graph
    if in_int8:
        traced_model = _in_int8(traced_model, weights, matrices)
    save(traced_model, file, describe_shapes(model.config), weights)


def export_decoder(
    transformer: Transformer, file: Path, precision: Precision, rescaled: Transformer | None = None
) -> None:
    """Write the decoder-step graph of layout `step` in float32 or int8. `rescaled` has unit keys and values."""
    in_int8 = precision == "int8"
    graph = DecoderStepGraph(rescaled or _in_ranges(transformer, precision), in_int8=in_int8).eval()
    num_layers = transformer.config.num_decoder_layers
    # At run time every row has its buffer's full length; the graph accepts any length.
    caches = example_caches(transformer, EXAMPLE_ROWS, 9, 11)
    rows = Dim("rows", min=1, max=2**16)
    target_len, source_len = Dim("target_len", min=1, max=2**16), Dim("source_len", min=1, max=2**16)
    recurrent = transformer.config.has_recurrent_decoder
    own_dims = [{0: rows}] if recurrent else [{0: rows, 2: target_len}] * 2
    cache_dims = [(*own_dims, *[{0: rows, 2: source_len}] * 2, *[{0: rows}] * 2) for _ in range(num_layers)]
    inputs = (
        torch.zeros(EXAMPLE_ROWS, dtype=torch.int32),
        torch.zeros(EXAMPLE_ROWS, dtype=torch.int32),
        torch.ones(EXAMPLE_ROWS, dtype=torch.int32),
        torch.tensor([2]),
        torch.tensor([2, 0]),
        caches,
    )
    model, weights = traced(
        graph,
        inputs,
        ({0: rows}, {0: rows}, {0: rows}, {}, {0: Dim("logit_rows", min=0, max=2**16)}, cache_dims),
        [name for name in names.decoder_input_names(num_layers, recurrent=recurrent) if name != names.WITH_SCORES],
        list(names.decoder_output_names(num_layers, recurrent=recurrent)),
    )
    matrices, ranking = graph.scaled_matrices, graph.ranking
    del graph
    for output in model.graph.output:
        if output.name in (names.CANDIDATE_LOGITS, names.CANDIDATE_TOKENS):
            output.type.tensor_type.shape.dim[1].dim_param = names.NUM_CANDIDATES
    if in_int8:
        model = _in_int8(model, weights, matrices, ranking)
    else:
        model = make_optional(model, names.LOG_NORMALIZER, names.WITH_SCORES, names.PAST_LENGTHS)
    save(model, file, describe_shapes(transformer.config), weights)


def _in_ranges(transformer: Transformer, precision: Precision) -> Transformer:
    assert precision != "float16", "float16 graphs have layout `parts`: export.graphs.parts_layout"
    return with_unit_keys_values(transformer) if precision == "int8" else transformer


def _in_int8(
    model: onnx.ModelProto, weights: Weights, matrices: Mapping[str, ScaledMatrix], ranking: Ranking | None = None
) -> onnx.ModelProto:
    model = store_caches_in_int8(quantize_per_row(model, matrices, ranking, weights))
    add_functions(model)
    return model


def describe_bundle(
    checkpoint: Checkpoint, folder: Path, precision: Precision, name: str, unknown_token_id: int
) -> BundleConfig:
    """Return the description of the files in `folder`, exported from a checkpoint."""
    config = checkpoint.config
    languages, template = checkpoint.languages, checkpoint.tokenizer.template
    num_layers, recurrent = config.num_decoder_layers, config.has_recurrent_decoder
    has_suppressed = bool(config.suppressed_token_ids)
    layout: Layout = "parts" if (folder / names.MOVE_FILE).exists() else "step"
    return BundleConfig(
        name=name,
        source_languages=languages.source,
        target_languages=languages.target,
        target_language_tokens=dict(languages.source_prefix),
        first_language_tokens=dict(languages.first_tokens),
        language_aliases=dict(languages.aliases),
        tokenizer=TokenizerDescription.model_validate(
            {
                "kind": checkpoint.tokenizer.kind,
                "before": template.before,
                "after": template.after,
                "source_language_tokens": dict(languages.source_tokens),
                "source_language_last": template.language_last,
                "prompts": dict(languages.prompts),
            }
        ),
        precision=precision,
        layout=layout,
        shapes=describe_shapes(config),
        attention_scale=config.scale_of_attention(config.decoder_shape),
        special_tokens=SpecialTokens(
            end_of_sequence=config.eos_token_id,
            padding=config.pad_token_id,
            decoder_start=config.decoder_start_token_id,
            unknown=unknown_token_id,
            suppressed=config.suppressed_token_ids,
            forced_end=config.forced_eos,
            forced_first=config.forced_first_token_id,
        ),
        generation=_described_generation(checkpoint),
        encoder_inputs=(
            names.SOURCE_TOKENS,
            names.SOURCE_LENGTHS,
            *([names.SOURCE_WIDTH] if layout == "parts" else []),
        ),
        encoder_outputs=encoder_outputs(config),
        decoder_inputs=names.decoder_input_names(num_layers, layout, recurrent=recurrent) if num_layers else (),
        decoder_outputs=names.decoder_output_names(
            num_layers, layout, recurrent=recurrent, has_suppressed=has_suppressed
        )
        if num_layers
        else (),
        provenance=Provenance(
            source=checkpoint.provenance.source,
            family=checkpoint.provenance.family,
            weights_sha256=checkpoint.provenance.weights_sha256,
            num_parameters=sum(weight.numel() for weight in checkpoint.weights.values()),
            exporter=f"kvasir {version('kvasir-server')}",
        ),
        files={path.name: record_file(path) for path in sorted(folder.iterdir())},
    )


def encoder_outputs(config: TransformerConfig) -> tuple[str, ...]:
    """Return the outputs of the encoder graph, in order."""
    keys_values = () if config.is_encoder_only else (names.CROSS_KEYS_VALUES,)
    return (*keys_values, names.HIDDEN_STATES)


def _described_generation(checkpoint: Checkpoint) -> GenerationDescription | None:
    generation = checkpoint.generation
    return None if generation is None else GenerationDescription.model_validate(asdict(generation))
