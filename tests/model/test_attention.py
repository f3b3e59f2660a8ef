import torch
from torch.nn import functional

from model.attention import MultiHeadAttention, causal_mask, padding_mask


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


def test_a_query_that_may_look_nowhere_stays_finite() -> None:
    attention = MultiHeadAttention(d_model=4, num_heads=1, head_dim=4)
    memory = torch.randn(1, 3, 4)
    mask = padding_mask(torch.zeros(1, 3, dtype=torch.bool))
    assert attention(memory, *attention.project_keys_values(memory), mask).isfinite().all()
