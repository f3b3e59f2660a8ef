import json
from pathlib import Path

import pytest

from model.checkpoints.hugging_face_files import CheckpointFolder, Settings
from model.families.t5 import t5_languages


@pytest.mark.parametrize("damaged", [None, "<2de>", 3, [], [None], {}, {"content": 3}])
def test_languages_are_read_from_a_tokenizer_with_other_entries(damaged: object, tmp_path: Path) -> None:
    content = {"model": {"vocab": [damaged, ["<2en>", 0.0]]}, "added_tokens": [damaged, {"content": "<2fr>"}]}
    (tmp_path / "tokenizer.json").write_text(json.dumps(content), "utf-8")
    languages = t5_languages(CheckpointFolder(tmp_path, "tiny"), Settings("config.json", {}))
    assert languages.target == ("en", "fr")
