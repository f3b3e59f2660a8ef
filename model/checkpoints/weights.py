"""Weights of a checkpoint: selection by parameter name, and construction of the model."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from model.checkpoints.checkpoint import Checkpoint, CheckpointError
from model.config import TransformerConfig
from model.transformer import EncoderModel, Transformer

_PRECISIONS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


def build_model(checkpoint: Checkpoint) -> Transformer:
    """Return the model of a checkpoint, in float32 and in evaluation mode."""
    model = Transformer(checkpoint.config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(checkpoint.weights[name])
    return model.eval()


def shared_model(checkpoint: Checkpoint) -> Transformer | EncoderModel:
    """Return the model of a checkpoint for reading: its parameters are the weights of the checkpoint, not copies.

    Weights in other precisions than float32 are converted, which copies them.
    """
    with torch.device("meta"):  # no memory, no random numbers
        model = EncoderModel(checkpoint.config) if checkpoint.config.is_encoder_only else Transformer(checkpoint.config)
    shared = {
        id(parameter): nn.Parameter(checkpoint.weights[name].float(), requires_grad=False)
        for name, parameter in model.named_parameters()
    }
    for module in model.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            setattr(module, name, shared[id(parameter)])  # tied parameters stay tied
    return model.eval()


def parameter_shapes(config: TransformerConfig) -> dict[str, torch.Size]:
    """Return the shape of every parameter of a model; a tied weight is listed once."""
    with torch.device("meta"):  # no memory, no random numbers
        model = EncoderModel(config) if config.is_encoder_only else Transformer(config)
        return {name: parameter.shape for name, parameter in model.named_parameters()}


def select_weights(
    shapes: Mapping[str, torch.Size],
    tensors: Mapping[str, Tensor],
    checkpoint_name: str,
    stored_names: Mapping[str, Sequence[str]] | None = None,
    ignored: Sequence[str] = (),
) -> dict[str, Tensor]:
    """Return the tensor of every parameter in `shapes`, in that shape.

    `stored_names` lists the names that each parameter can have in the checkpoint, by default its own. Tensors under
    several of these names must be equal. `ignored` are names that are allowed and not read. Raises `CheckpointError`
    with every missing, unexpected, misshapen, unusable and contradictory tensor.
    """
    stored_names = stored_names or {parameter: [parameter] for parameter in shapes}
    missing: list[str] = []
    misshapen: list[str] = []
    unusable: list[str] = []
    contradictory: list[str] = []
    selected: dict[str, Tensor] = {}
    for parameter, shape in shapes.items():
        present = [name for name in stored_names[parameter] if name in tensors]
        if not present:
            missing.append(" or ".join(stored_names[parameter]))
            continue
        wrong = [name for name in present if not _fits(tensors[name], shape)]
        misshapen += [f"{name} is {list(tensors[name].shape)}, its settings give {list(shape)}" for name in wrong]
        if wrong:
            continue
        bad = [f"{name} {problem}" for name in present if (problem := _problem(tensors[name]))]
        unusable += bad
        if bad:
            continue
        first, *others = present
        contradictory += [
            f"{other} differs from {first}, to which it is tied"
            for other in others
            if not torch.equal(tensors[other], tensors[first])
        ]
        selected[parameter] = tensors[first].reshape(shape)

    allowed = {name for names in stored_names.values() for name in names} | set(ignored)
    problems = {
        "missing": missing,
        "unexpected": sorted(set(tensors) - allowed),
        "wrong shape": misshapen,
        "unusable": unusable,
        "contradictory": contradictory,
    }
    if any(problems.values()):
        lines = [f"{kind}: {'; '.join(names)}" for kind, names in problems.items() if names]
        raise CheckpointError(f"{checkpoint_name}: the weights do not fit their settings:\n  " + "\n  ".join(lines))
    return selected


def _fits(tensor: Tensor, shape: torch.Size) -> bool:
    # A vector can be stored as a matrix of one row: Marian's final_logits_bias is.
    return tensor.shape == shape or (len(shape) == 1 and tensor.shape == (1, *shape))


def _problem(tensor: Tensor) -> str:
    """Return the reason why a tensor cannot be a weight; empty if it can."""
    if tensor.dtype not in _PRECISIONS or tensor.layout is not torch.strided or tensor.is_meta:
        return f"has {tensor.dtype} values ({'none' if tensor.is_meta else tensor.layout}), not floating-point numbers"
    # Of the smallest and the largest value: a mask of all values would be a copy.
    if not torch.stack(torch.aminmax(tensor)).isfinite().all():
        return "contains NaN or infinite numbers"
    return ""
