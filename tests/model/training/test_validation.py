import torch

from model.training.validation import decode_greedily, label_loss
from tests.model.random_models import small_model

MARIAN = {"decoder_start_token_id": 0, "suppressed_token_ids": (0, 3)}
PADDING = 6


def test_cached_greedy_decoding_takes_the_likeliest_token_at_each_place() -> None:
    model = small_model(MARIAN)
    source = torch.tensor([[4, 5, 6, 1], [7, 1, 0, 0]])
    mask = source != 0
    answers = decode_greedily(model, source, mask, 9)
    for row, answer in enumerate(answers):
        for place in range(len(answer)):
            before = torch.cat([torch.tensor([0]), answer[:place]])[None]
            if bool((before == 1).any()):
                assert answer[place] == 0  # padding behind the end
                continue
            with torch.no_grad():
                logits = model(source[row : row + 1], mask[row : row + 1], before)[0, -1]
            logits[[0, 3]] = -torch.inf
            assert answer[place] == logits.argmax()


def test_the_loss_is_the_cross_entropy_with_smoothed_labels() -> None:
    logits, labels = torch.randn(2, 3, 7), torch.tensor([[1, 5, 0], [2, 3, 4]])
    wanted = torch.full((2, 3, 7), 0.1 / 7).scatter_(-1, labels[..., None], 0.9 + 0.1 / 7)
    expected = -(wanted * logits.log_softmax(-1)).sum()
    torch.testing.assert_close(label_loss(logits, labels, PADDING, 0.1), expected)
