import pytest

from model.checkpoints.checkpoint import CheckpointError
from model.families.marian.description import read_yaml


def test_yaml_of_a_vocabulary_is_read_as_its_tokens() -> None:
    pieces = ["no", "12:30", "<<", "off", "1_000", "010", "1e", "1.50", "true", "null", "~", "+5", "1e5", ".5"]
    text = '"</s>": 0\n' + "".join(f"{piece}: {number}\n" for number, piece in enumerate(pieces, 1))
    assert read_yaml(text, "vocab.yml") == {"</s>": 0} | {piece: number for number, piece in enumerate(pieces, 1)}
    values = "a: true\nb: 1e-6\nc: -5\nd:\ne: [x, 0.5]\n"
    assert read_yaml(values, "model.yml") == {"a": True, "b": 1e-6, "c": -5, "d": None, "e": ["x", 0.5]}
    assert read_yaml('--- # Marian\n! "a": ! "1"\nb: !!str 1\n...\n', "model.yml") == {"a": "1", "b": "1"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "model.yml is not YAML: while parsing a flow node"),
        ("a: 1\n---\nb: 1", "it must have one document"),
        ("", "must be a mapping of fields. Given: NoneType"),
        ("# only a comment", "must be a mapping of fields. Given: NoneType"),
        ("- a", "must be a mapping of fields. Given: list"),
        ("[a]: 1", "the name of a field must be a text"),
        ("a: " + "[" * 100_000, "at most 32 levels of nesting"),
        ("- " * 100_000, "at most 32 levels of nesting"),
        ("? " * 100_000, "the name of a field must be a text"),
        ("a: !!python/name:os.system", "no tags of applications. Given: tag:yaml.org,2002:python/name:os.system"),
        ("a: &a [x]\nb: *a", r"no aliases. Given: \*a"),
        ("a: \x00", "is not YAML"),
        ("a: " + "9" * 5000, "Exceeds the limit"),
    ],
)
def test_hostile_yaml_is_an_error(text: str, message: str) -> None:
    with pytest.raises(CheckpointError, match=message) as error:
        read_yaml(text, "model.yml")
    assert len(str(error.value)) < 200
