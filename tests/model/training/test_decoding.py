import torch

from model.training.validation import decode_greedily
from tests.model.random_models import small_model

MARIAN = {"decoder_start_token_id": 0, "suppressed_token_ids": (0, 3)}


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


def test_decoding_ends_when_every_answer_has() -> None:
    model = small_model(MARIAN | {"output_bias": True})
    with torch.no_grad():
        assert model.output_bias is not None
        model.output_bias[1] = 100.0
    source = torch.tensor([[4, 5, 6, 1]])
    assert decode_greedily(model, source, source != 0, 9).tolist() == [[1]]
