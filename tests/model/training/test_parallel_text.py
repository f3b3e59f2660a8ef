import lzma
from pathlib import Path

import pytest

from model.training.parallel_text import read_pairs

LINES = "One.\tEins.\nTwo \u2028 three.\tZwei, drei.\r\n"


@pytest.mark.parametrize("name", ["pairs.tsv", "pairs.tsv.xz"])
def test_pairs_are_read_plain_and_compressed(name: str, tmp_path: Path) -> None:
    content = LINES.encode()
    (tmp_path / name).write_bytes(lzma.compress(content) if name.endswith("xz") else content)
    # A line separator of Unicode ends no line.
    assert list(read_pairs(tmp_path / name)) == [("One.", "Eins."), ("Two \u2028 three.", "Zwei, drei.")]


def test_columns_can_be_swapped(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("One.\tEins.\n", "utf-8")
    assert list(read_pairs(tmp_path / "pairs.tsv", swap_columns=True)) == [("Eins.", "One.")]


@pytest.mark.parametrize("line", ["Two.", "Two.\tZwei.\t2", "Two.\t ", ""])
def test_a_line_that_is_no_pair_is_named(line: str, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text(f"One.\tEins.\n{line}\nThree.\tDrei.\n", "utf-8")
    with pytest.raises(ValueError, match=r"pairs\.tsv, line 2: a line must have two columns"):
        list(read_pairs(tmp_path / "pairs.tsv"))


def test_a_byte_order_mark_is_no_part_of_the_first_word(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("One.\tEins.\nTwo.\t\ufeffZwei.\n", "utf-8-sig")
    assert list(read_pairs(tmp_path / "pairs.tsv")) == [("One.", "Eins."), ("Two.", "\ufeffZwei.")]


def test_a_line_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_bytes("One.\tEins.\nStreet.\tStraße.\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"pairs\.tsv, line 2: not UTF-8 at byte 13"):
        list(read_pairs(tmp_path / "pairs.tsv"))


def test_a_compressed_file_that_is_damaged_or_cut_off_is_named(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv.xz"
    whole = lzma.compress(LINES.encode() * 1000)
    for content in (whole[: len(whole) // 2], whole[:-20] + bytes(20), LINES.encode()):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"pairs\.tsv\.xz is damaged, truncated or not compressed with xz"):
            list(read_pairs(path))
