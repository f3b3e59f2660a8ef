import math

import torch
from torch.nn import functional

from model.attention import MultiHeadAttention, causal_mask, padding_mask


def test_attention_is_the_scaled_dot_product_of_each_head() -> None:
    attention = MultiHeadAttention(d_model=6, num_heads=2, head_dim=5)
    query, memory = torch.randn(1, 3, 6), torch.randn(1, 4, 6)
    with torch.no_grad():
        keys, values = attention.project_keys_values(memory)
        output = attention(query, keys, values)
        heads = []
        for head in range(2):
            rows = slice(5 * head, 5 * head + 5)
            q = query[0] @ attention.query_proj.weight[rows].T + attention.query_proj.bias[rows]
            k = memory[0] @ attention.key_proj.weight[rows].T + attention.key_proj.bias[rows]
            v = memory[0] @ attention.value_proj.weight[rows].T + attention.value_proj.bias[rows]
            heads.append(torch.softmax(q @ k.T / math.sqrt(5), dim=-1) @ v)
        expected = torch.cat(heads, dim=-1) @ attention.out_proj.weight.T + attention.out_proj.bias

    assert keys.shape == values.shape == (1, 2, 4, 5)
    torch.testing.assert_close(output[0], expected)


def test_attention_with_a_mask_equals_that_of_pytorch() -> None:
    attention = MultiHeadAttention(d_model=8, num_heads=2, head_dim=4)
    hidden = torch.randn(2, 5, 8)
    mask = causal_mask(5)
    with torch.no_grad():
        keys, values = attention.project_keys_values(hidden)
        output = attention(hidden, keys, values, mask)
        queries = attention.query_proj(hidden).view(2, 5, 2, 4).transpose(1, 2)
        reference = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
        expected = attention.out_proj(reference.transpose(1, 2).reshape(2, 5, 8))

    torch.testing.assert_close(output, expected)


def test_what_a_mask_hides_has_no_influence_at_all() -> None:
    attention = MultiHeadAttention(d_model=8, num_heads=2, head_dim=4)
    query, memory = torch.randn(1, 2, 8), torch.randn(1, 5, 8)
    mask = padding_mask(torch.tensor([[True, True, False, True, False]]))
    disturbed = memory.clone()
    disturbed[0, [2, 4]] = 1e4
    with torch.no_grad():
        plain = attention(query, *attention.project_keys_values(memory), mask)
        other = attention(query, *attention.project_keys_values(disturbed), mask)

    assert torch.equal(plain, other)


def test_a_query_that_may_look_nowhere_stays_finite() -> None:
    attention = MultiHeadAttention(d_model=4, num_heads=1, head_dim=4)
    memory = torch.randn(1, 3, 4)
    mask = padding_mask(torch.zeros(1, 3, dtype=torch.bool))
    assert attention(memory, *attention.project_keys_values(memory), mask).isfinite().all()


def test_a_new_token_sees_the_past_and_itself() -> None:
    assert causal_mask(2, past_len=3).tolist() == [[True] * 4 + [False], [True] * 5]
