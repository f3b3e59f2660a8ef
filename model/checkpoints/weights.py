"""Copies a checkpoint's weights into a model, or says everything that does not fit, by name, in one error."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from model.checkpoints.hugging_face_files import CheckpointError
from model.transformer import Transformer


def copy_weights(
    model: Transformer,
    tensors: Mapping[str, Tensor],
    their_names: Mapping[str, Sequence[str]],
    ignored: Sequence[str],
    checkpoint_name: str,
) -> None:
    """Fill every parameter of `model` from `tensors`.

    `their_names` gives, for each of our parameters, the names it may have in the checkpoint; where several are
    there, they must hold the same numbers. `ignored` are names that may be there and are not read. Raises
    CheckpointError listing every missing, unexpected, misshapen and contradictory weight; the model is then unchanged.
    """
    missing: list[str] = []
    misshapen: list[str] = []
    contradictory: list[str] = []
    copies: list[tuple[Tensor, Tensor]] = []
    for our_name, parameter in model.named_parameters():
        present = [name for name in their_names[our_name] if name in tensors]
        if not present:
            missing.append(" or ".join(their_names[our_name]))
            continue
        wrong = [name for name in present if not _same_shape(tensors[name], parameter)]
        misshapen += [
            f"{name} is {list(tensors[name].shape)}, its settings say {list(parameter.shape)}" for name in wrong
        ]
        if wrong:
            continue
        first, *others = present
        contradictory += [
            f"{other} differs from {first}, to which it is tied"
            for other in others
            if not torch.equal(tensors[other], tensors[first])
        ]
        copies.append((parameter, tensors[first]))

    known = {name for names in their_names.values() for name in names} | set(ignored)
    unexpected = sorted(set(tensors) - known)
    problems = {
        "missing": missing,
        "unexpected": unexpected,
        "wrong shape": misshapen,
        "contradictory": contradictory,
    }
    if any(problems.values()):
        lines = [f"{kind}: {'; '.join(names)}" for kind, names in problems.items() if names]
        raise CheckpointError(f"{checkpoint_name}: the weights do not fit their settings\n  " + "\n  ".join(lines))

    with torch.no_grad():
        for target, tensor in copies:
            target.copy_(tensor.reshape(target.shape))  # half precision becomes float32 here


def _same_shape(tensor: Tensor, parameter: Tensor) -> bool:
    # A vector may be stored as a matrix of one row: Marian's final_logits_bias is.
    return tensor.shape == parameter.shape or (parameter.dim() == 1 and tensor.shape == (1, *parameter.shape))
