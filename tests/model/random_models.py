"""Small models with random weights, ours and the reference implementation's."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from transformers import MarianConfig, MarianMTModel

from model.config import TransformerConfig
from model.transformer import Transformer

Options = Mapping[str, object]


def small_config(options: Options) -> TransformerConfig:
    """A valid configuration of a few thousand weights, with some fields overridden."""
    defaults: dict[str, object] = {
        "vocab_size": 31,
        "d_model": 12,
        "num_heads": 3,
        "feed_forward_width": 20,
        "num_encoder_layers": 2,
        "num_decoder_layers": 2,
        "max_source_tokens": 16,
        "max_target_tokens": 16,
        "pad_token_id": 0,
        "eos_token_id": 1,
        "decoder_start_token_id": 2,
    }
    return TransformerConfig(**(defaults | dict(options)))  # type: ignore[arg-type]


def small_model(options: Options) -> Transformer:
    """A model in evaluation mode, no parameter of it at a value that could be forgotten unnoticed."""
    model = Transformer(small_config(options)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model


@dataclass(frozen=True, slots=True)
class SavedMarian:
    """A Marian checkpoint on disk and the reference implementation that wrote it."""

    folder: Path
    reference: MarianMTModel

    def logits(self, source: Tensor, source_mask: Tensor, target_inputs: Tensor) -> Tensor:
        """Return the teacher-forced logits of the reference implementation."""
        with torch.no_grad():
            output = self.reference(
                input_ids=source, attention_mask=source_mask.long(), decoder_input_ids=target_inputs, use_cache=False
            )
        logits: Tensor = output.logits
        return logits


def save_marian(folder: Path, options: Options) -> SavedMarian:
    """Write a random Marian checkpoint, with some settings overridden."""
    defaults: dict[str, object] = {
        "vocab_size": 41,
        "decoder_vocab_size": 41,
        "d_model": 12,
        "encoder_layers": 2,
        "decoder_layers": 1,
        "encoder_attention_heads": 3,
        "decoder_attention_heads": 3,
        "encoder_ffn_dim": 18,
        "decoder_ffn_dim": 18,
        "activation_function": "swish",
        "max_position_embeddings": 24,
        "scale_embedding": True,
        "pad_token_id": 30,
        "eos_token_id": 0,
        "forced_eos_token_id": 0,
        "decoder_start_token_id": 30,
    }
    config = MarianConfig.from_dict(defaults | dict(options))
    reference = MarianMTModel(config)
    reference.train(False)
    trained = [parameter for parameter in reference.parameters() if parameter.requires_grad]
    with torch.no_grad():
        for tensor in [*trained, reference.final_logits_bias]:
            tensor.add_(torch.randn_like(tensor) * 0.25)
    reference.generation_config.bad_words_ids = [[config.pad_token_id]]
    reference.save_pretrained(folder)
    return SavedMarian(folder, reference)
