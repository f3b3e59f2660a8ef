import re
from pathlib import Path

import numpy as np
import pytest

from model.training.vocabulary import JointVocabulary, read_vocabulary, train_vocabulary
from tests.model.training.toy_runs import WORDS

TEXTS = [f"{first} {second}" for first in WORDS for second in WORDS]


@pytest.fixture(scope="module")
def vocabulary() -> JointVocabulary:
    return train_vocabulary(TEXTS, 300)


@pytest.mark.parametrize("text", ["ant bee", "Größe: 5 €", "日本 🦊"])
def test_every_text_comes_back_from_its_tokens(text: str, vocabulary: JointVocabulary) -> None:
    (tokens,) = vocabulary.encode([text])
    assert tokens[-1] == vocabulary.end
    assert vocabulary.unknown not in tokens
    assert vocabulary.decode([*tokens, vocabulary.padding, 5]) == text


def test_what_was_written_is_read_again(vocabulary: JointVocabulary, tmp_path: Path) -> None:
    vocabulary.write(tmp_path)
    read = read_vocabulary(tmp_path)
    assert read.numbers == vocabulary.numbers
    np.testing.assert_array_equal(read.encode(["gnu hen"])[0], vocabulary.encode(["gnu hen"])[0])


def test_a_checkpoint_with_two_vocabularies_or_none_is_rejected(vocabulary: JointVocabulary, tmp_path: Path) -> None:
    vocabulary.write(tmp_path)
    (tmp_path / "target_vocab.json").write_text("{}", "utf-8")
    with pytest.raises(ValueError, match="one vocabulary for both languages"):
        read_vocabulary(tmp_path)
    (tmp_path / "target_vocab.json").unlink()
    (tmp_path / "target.spm").unlink()
    with pytest.raises(ValueError, match=r"target\.spm is missing; training requires a Marian checkpoint"):
        read_vocabulary(tmp_path)


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("source.spm", "garbage", r"source\.spm is not a SentencePiece model, or damaged"),
        ("target.spm", "", r"target\.spm is empty"),
        ("vocab.json", "[" * 100_000, r"vocab\.json: not readable as JSON"),
        ("vocab.json", '{"</s>": 0, "<unk>": 1}', r"vocab\.json: `<pad>` must be a whole number\. Given: absent"),
    ],
)
def test_a_damaged_file_is_named(
    vocabulary: JointVocabulary, tmp_path: Path, file: str, content: str, reason: str
) -> None:
    vocabulary.write(tmp_path)
    (tmp_path / file).write_text(content, "utf-8")
    with pytest.raises(ValueError, match=reason):
        read_vocabulary(tmp_path)


@pytest.mark.parametrize(
    ("size", "way_out"), [(8000, r"Given: 8000; use --vocab-size"), (50, "more different characters")]
)
def test_a_size_that_the_text_does_not_allow_is_refused_with_one_that_it_does(size: int, way_out: str) -> None:
    with pytest.raises(ValueError, match=way_out) as raised:
        train_vocabulary(TEXTS, size)
    (allowed,) = re.findall(r"--vocab-size (\d+)", str(raised.value))
    assert len(train_vocabulary(TEXTS, int(allowed))) == int(allowed)


def test_source_and_target_may_have_pieces_of_their_own_and_a_language_token(
    vocabulary: JointVocabulary, tmp_path: Path
) -> None:
    """As in OPUS-MT checkpoints: two SentencePiece models, one `vocab.json`."""
    german = train_vocabulary([f"{first} {second}" for first in ("Hund", "Katze") for second in ("und", "oder")], 275)
    words = [piece for piece in german.numbers if piece not in vocabulary.numbers]
    pieces = [piece for piece in vocabulary.numbers if piece != "<pad>"]
    numbers = {piece: number for number, piece in enumerate([*pieces, *words, ">>deu<<", ">>nld<<", "<pad>"])}
    JointVocabulary(vocabulary.sentencepiece, numbers, german.sentencepiece).write(tmp_path)
    read = read_vocabulary(tmp_path, "de")
    (source,), (target,) = read.encode(["ant bee"]), read.encode_targets(["Hund oder"])
    assert source[0] == numbers[">>deu<<"]
    assert source[1:].tolist() == vocabulary.encode(["ant bee"])[0].tolist()
    assert read.unknown not in target
    assert read.decode(target) == "Hund oder"
    assert len(target) < len(read.encode(["Hund oder"])[0]) - 1
    split = read.with_split_digits()
    assert split.encode(["ant bee"])[0].tolist() == source.tolist()
    assert split.encode_targets(["Hund oder"])[0].tolist() == target.tolist()
    with pytest.raises(ValueError, match=r"must have the target fr\. Given: de, nl"):
        read_vocabulary(tmp_path, "fr")
