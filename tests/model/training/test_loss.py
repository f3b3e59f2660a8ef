import torch

from model.training.validation import label_loss

PADDING = 6


def test_the_loss_is_the_cross_entropy_with_smoothed_labels() -> None:
    logits, labels = torch.randn(2, 3, 7), torch.tensor([[1, 5, 0], [2, 3, 4]])
    wanted = torch.full((2, 3, 7), 0.1 / 7).scatter_(-1, labels[..., None], 0.9 + 0.1 / 7)
    expected = -(wanted * logits.log_softmax(-1)).sum()
    torch.testing.assert_close(label_loss(logits, labels, PADDING, 0.1), expected)


def test_padding_costs_nothing() -> None:
    logits, labels = torch.randn(2, 3, 7), torch.tensor([[1, 5, PADDING], [2, PADDING, PADDING]])
    alone = [
        label_loss(logits[:1, :2], labels[:1, :2], PADDING, 0.1),
        label_loss(logits[1:, :1], labels[1:, :1], 6, 0.1),
    ]
    torch.testing.assert_close(label_loss(logits, labels, PADDING, 0.1), alone[0] + alone[1])


def test_bfloat16_logits_are_compared_in_float32() -> None:
    logits, labels = torch.randn(1, 4, 50).bfloat16(), torch.tensor([[1, 5, 0, 30]])
    loss = label_loss(logits, labels, PADDING, 0.1)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, label_loss(logits.float(), labels, PADDING, 0.1))
