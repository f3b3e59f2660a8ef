"""Simpler simple recurrent unit (Kim et al. 2019, "From Research to Production and Back", section 3.2).

The state of a decoder layer is one vector a row, whatever the number of decoded tokens.
"""

import torch
from torch import Tensor, nn


class SSRU(nn.Module):
    """c_t = f_t * c_(t-1) + (1 - f_t) * W x_t, with f_t = sigmoid(V x_t + b); the output is relu(c_t).

    The state before the first token is zero.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.input_proj = nn.Linear(d_model, d_model, bias=False)
        self.forget_proj = nn.Linear(d_model, d_model)

    def forward(self, hidden: Tensor, past: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return outputs shaped like `hidden` [rows, new_len, d_model], and the state [rows, d_model] after them.

        `past` is the state after the tokens before them.
        """
        kept = torch.sigmoid(self.forget_proj(hidden))
        added = (1 - kept) * self.input_proj(hidden)
        state = torch.zeros_like(hidden[:, 0]) if past is None else past
        states: list[Tensor] = []
        # Unbound first: a slice in each turn would cost as much as the sum.
        for kept_part, added_part in zip(kept.unbind(1), added.unbind(1), strict=True):
            state = torch.addcmul(added_part, kept_part, state)
            states.append(state)
        return torch.relu(torch.stack(states, dim=1)), state
