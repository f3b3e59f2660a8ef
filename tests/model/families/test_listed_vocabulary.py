from pathlib import Path

import pytest

from model.checkpoints.checkpoint import CheckpointError
from model.families.listed_vocabulary import SpecialNames, Vocabularies, read_tokenizer


@pytest.mark.parametrize(("tokens", "missing"), [(["<unk>", "</s>"], "<s>"), (["<unk>", "<s>"], "</s>")])
def test_a_token_that_the_settings_add_must_be_in_the_vocabulary(
    tokens: list[str], missing: str, tmp_path: Path
) -> None:
    special = SpecialNames("<unk>", "<s>", "</s>", "<s>", adds_beginning=True, adds_end=True)
    with pytest.raises(CheckpointError, match=f"has no '{missing}', which its settings add to every source"):
        read_tokenizer(tmp_path, Vocabularies(tokens, tokens), special, begins_source=False)
