"""Content of `bundle.json` for a checkpoint."""

from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from bundle import tensors as names
from bundle.loading import record_file
from bundle.manifest import BundleConfig, GenerationDescription, Provenance, SpecialTokens, TokenizerDescription
from bundle.tensors import Layout, Precision
from export.graphs.shapes import describe_shapes
from model.checkpoints.checkpoint import Checkpoint
from model.config import TransformerConfig


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
        generation=_generation(checkpoint),
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


def _generation(checkpoint: Checkpoint) -> GenerationDescription | None:
    generation = checkpoint.generation
    return None if generation is None else GenerationDescription.model_validate(asdict(generation))
