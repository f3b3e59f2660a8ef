import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from export.checks import ExportError, require_tokenizer
from model.checkpoints.checkpoint import TokenizerFiles
from model.families.registry import read_checkpoint


@pytest.mark.parametrize("name", ["vocab.json", "target_vocab.json"])
@pytest.mark.parametrize(
    ("token", "reason"),
    [
        (-1, "has a token -1, but the weights have"),
        (10_000, "has a token 10000, but the weights have"),
        (1 << 70, "has a token 1180591620717411303424, but the weights have"),
    ],
)
def test_a_token_without_an_embedding_is_rejected(
    checkpoint: Path, tmp_path: Path, name: str, token: int, reason: str
) -> None:
    changed = Path(shutil.copytree(checkpoint, tmp_path / "changed"))
    vocabulary = json.loads((changed / "vocab.json").read_text("utf-8"))
    (changed / name).write_text(json.dumps(vocabulary | {"beyond": token}), "utf-8")
    with pytest.raises(ExportError, match=f"{name} {reason}"):
        require_tokenizer(read_checkpoint(changed), pytest.fail)


@pytest.mark.parametrize("content", ['{"a": ' * 100_000, '{"a": ' + "9" * 5000 + "}"])
def test_a_vocabulary_that_ends_the_reader_of_json_is_rejected(checkpoint: Path, tmp_path: Path, content: str) -> None:
    changed = Path(shutil.copytree(checkpoint, tmp_path / "changed"))
    (changed / "target_vocab.json").write_text(content, "utf-8")
    with pytest.raises(ExportError, match=r"target_vocab\.json is not JSON: "):
        require_tokenizer(read_checkpoint(changed), pytest.fail)


def test_a_tokenizer_that_panics_is_rejected_with_its_file_and_a_way_out(
    checkpoint: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    content = {
        "version": "1.0",
        "added_tokens": [],
        "model": {"type": "BPE", "unk_token": "<unk>", "vocab": {"<unk>": 0}, "merges": []},
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"},
    }
    files = TokenizerFiles("tokenizer_json", {}, converted={"tokenizer.json": json.dumps(content).encode()})
    with pytest.raises(ExportError, match=r"tokenizer\.json is damaged, or .*: Precompiled: .*; download it again"):
        require_tokenizer(replace(read_checkpoint(checkpoint), tokenizer=files), pytest.fail)
    os.write(2, b"afterwards")
    assert capfd.readouterr().err == "afterwards", "the text of the panic is not for users"
