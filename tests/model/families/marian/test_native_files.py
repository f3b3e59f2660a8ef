import gzip
import json
from pathlib import Path

from benchmarks.random_marian_files import MarianShape, write_random_model
from model.families.registry import read_checkpoint


def test_a_folder_of_bergamot_is_read_as_it_lies_on_disk(tmp_path: Path) -> None:
    folder = write_random_model(tmp_path / "ende.student.tiny11", MarianShape())
    (folder / "model.npz").rename(folder / "model.intgemm.alphas.npz")
    (folder / "lex.s2t.bin").write_bytes(b"binary")
    (folder / "lex.s2t.gz").write_bytes(gzip.compress(b"Haus house 0.9\n"))
    (vocabulary,) = folder.glob("vocab*")
    vocabulary.rename(folder / f"vocab.deen{vocabulary.suffix}")
    settings = {
        "relative-paths": True,
        "models": ["model.intgemm.alphas.npz"],
        "vocabs": [f"vocab.deen{vocabulary.suffix}"] * 2,
        "shortlist": ["lex.s2t.gz", 50, 50],
    }
    for name in ("config.intgemm8bitalpha.yml", "config.bergamot.yml"):
        (folder / name).write_text(json.dumps(settings), "utf-8")
    (folder / "catalog-entry.yml").write_text("name: tiny11\n", "utf-8")
    (folder / "._model.npz.decoder.yml").write_bytes(b"\0\x05\x16\x07")  # attributes, of macOS
    checkpoint = read_checkpoint(str(folder))
    # The vocabulary, which both directions share, is named after the other one.
    assert (checkpoint.languages.source, checkpoint.languages.target) == (("en",), ("de",))
    assert checkpoint.shortlist == folder / "lex.s2t.bin"
    assert checkpoint.unread_shortlists == ()
    (folder / "lex.s2t.bin").unlink()
    checkpoint = read_checkpoint(str(folder))
    assert checkpoint.shortlist is None
    assert checkpoint.unread_shortlists == (folder / "lex.s2t.gz",)
