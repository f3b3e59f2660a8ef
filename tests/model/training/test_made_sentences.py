import re
from pathlib import Path
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from model.training import made_sentences
from model.training.made_sentences import Evidence, Filling, Grammar, Items, Noun, SentenceMaker, rows

SLOT = re.compile(r"\{([^{}]+)\}")
# The endings of "der", "die", "das" and "die", by which an article or an adjective shows gender, number and case.
SHOWN = {"nominative": "rese", "accusative": "nese", "dative": "mrmn"}
COLUMNS = ("masculine", "feminine", "neuter", "plural")
NOUNS = {
    "m": Noun("kettle", "Kessel", "m", "kettles", "Kessel", 4.0, "thing", "Kessel"),
    "f": Noun("rake", "Harke", "f", "rakes", "Harken", 4.0, "thing", "Harke"),
    "n": Noun("oar", "Ruder", "n", "oars", "Ruder", 4.0, "thing", "Ruder"),
}
TABLE = """\
kettle	Kessel	m	kettles	Kessel	4.1
oar	Ruder	n	oars	Ruder	3.9
nephew	Neffe	m	nephews	Neffen	4.0
milk	Milch	f			4.8
humidity	Feuchte	f			3.2
"""


def _adjectives(**predicates: str) -> dict[str, dict[str, str]]:
    return {
        name: {"english": name, "predicate": predicates.get(name, "-"), "stem": stem}
        for name, stem in (("A", "blau"), ("B", "matt"))
    }


def _german(slot: str, noun: Noun) -> str:
    return Grammar().german(slot, Filling({"N": noun}, _adjectives()))


def test_frames_name_kinds_items_and_columns_that_there_are() -> None:
    kinds = {*made_sentences._lists("kinds"), "*", "-"}
    items, columns = {row["item"] for row in rows("items")}, rows("verbs")[0].keys()
    for frame in rows("frames"):
        assert {*frame["noun"].split("|"), frame["second"] or "*"} <= kinds, frame
        if frame["noun"] == "-":
            assert set(SLOT.findall(frame["english"])) <= items, frame
    for row in rows("adjectives"):
        assert set(row["kinds"].split("|")) <= kinds, row
        assert not row["stem"].endswith("e"), row
    for frame in rows("verb_frames"):
        assert set(SLOT.findall(frame["english"] + frame["german"])) <= columns, frame


def test_every_frame_makes_sentences_without_slots() -> None:
    kinds = list(made_sentences._lists("kinds"))
    nouns = [Noun(f"x{kind}", f"X{kind}", "f", "xs", "Xs", 4.0, kind, f"X{kind}") for kind in [*kinds, *kinds]]
    nouns += [Noun("y", "Y", "f", "", "", 4.0, kind, "Y") for kind in kinds]
    nouns += [Noun("z", "Z", "f", "zs", "Zs", 4.0, kind, "Z") for kind in kinds]
    maker = SentenceMaker(Random(1), nouns)
    frames = [frame for frame in rows("frames") if frame["noun"] != "-"]
    filled = [frame for frame in frames if any(maker._filled(frame, noun) for noun in nouns)]
    assert filled == frames
    made = [pair for noun in nouns for pair in maker.with_noun(noun, 1000)]
    for pair in [*made, *maker.with_verbs(), *maker.with_items(1)]:
        assert not re.search(r"[{}]|  | [.,?!]|\.\.|^[a-zäöü]", "\n".join(pair), re.MULTILINE), pair


@given(st.sampled_from(rows("determiners")), st.sampled_from("mfn"), st.booleans(), st.sampled_from(["A-", "neu-"]))
def test_article_or_adjective_shows_gender_number_and_case(
    row: made_sentences.Row, gender: str, is_plural: bool, adjective: str
) -> None:
    column = "plural" if is_plural else COLUMNS["mfn".index(gender)]
    if row["endings"] == "pronoun" or row[column] == "-":
        return
    phrase = _german(f"{row['key']} {adjective} {'Ns' if is_plural else 'N'}", NOUNS[gender])
    noun = phrase.split(" ")[-1]
    words = phrase.removesuffix(f" {noun}").split(" ")
    shown = SHOWN[row["case"]][COLUMNS.index(column)]
    has_determiner = bool(row[column])
    determiner = words[-2] if has_determiner else ""
    stem = "blau" if adjective == "A-" else "neu"
    ending = words[-1].removeprefix(stem)
    # One of both has the ending of the definite article; the other one then ends in -e or -en.
    is_bare = row["endings"] == "mixed" and (shown == "s" or (shown == "r" and column == "masculine"))
    if determiner.endswith(shown) and not is_bare:
        assert ending in ("e", "en")
        oblique = row["case"] == "dative" or is_plural or shown == "n"
        assert (ending == "en") == oblique
    else:
        assert ending.endswith(shown)
    assert noun == {"plural": NOUNS[gender].german_plural}.get(column, NOUNS[gender].german) + "n" * (
        is_plural and row["case"] == "dative" and gender != "f"
    )


@given(st.integers(0, 10**6), st.sampled_from(["time", "amount", "number", "percent", "code", "phone"]))
def test_items_mean_the_same_in_both_languages(seed: int, item: str) -> None:
    english, german = Items(Random(seed)).pair(item)
    hour = re.match(r"(\d+)(?::(\d\d))?(?: ([ap])\.?m)?", english, re.IGNORECASE)
    if item == "time" and hour is not None and hour[3]:
        expected = int(hour[1]) % 12 + 12 * (hour[3].lower() == "p")
        found = re.findall(r"\d+", german)
        assert [int(found[0]), *found[1:]] == [expected, *filter(None, [hour[2]])]
    else:
        swapped = english.translate(str.maketrans(",.", ".,")) if item in ("amount", "number", "percent") else english
        assert re.findall(r"[\d.,]*\d", swapped) == re.findall(r"[\d.,]*\d", german)


def test_parallel_text_decides_which_translation_is_usual() -> None:
    usual = Noun("spring", "Feder", "f", "springs", "Federn", 4.0, "other", "Feder")
    unusual = Noun("spring", "Quelle", "f", "springs", "Quellen", 4.0, "other", "Quelle")
    unseen = Noun(
        "coil spring", "Schraubenfeder", "f", "coil springs", "Schraubenfedern", 4.0, "other", "Schraubenfeder"
    )
    pairs = [("The springs are worn.", "Die Federn sind verschlissen.")] * 30
    pairs += [("We trust this source.", "Wir trauen dieser Quelle.")] * 30
    evidence = Evidence([usual, unusual, unseen], pairs)
    assert [evidence.supports(noun) for noun in (usual, unusual, unseen)] == [True, False, True]


def test_the_command_makes_the_same_pairs_from_one_seed_but_for_held_out_ones(tmp_path: Path) -> None:
    table, held_out = tmp_path / "nouns.tsv", tmp_path / "held-out.tsv"
    table.write_text(TABLE, "utf-8")

    def made(*arguments: str) -> list[str]:
        words = [str(table), str(tmp_path / "made.tsv"), "--num-items", "2", "--num-frames", "1", *arguments]
        result = CliRunner().invoke(made_sentences.command, words)
        assert result.exit_code == 0, result.output
        return (tmp_path / "made.tsv").read_text("utf-8").splitlines()

    lines = made()
    assert len(lines) == len(set(lines))
    assert all(line.count("\t") == 1 for line in lines)
    assert sum("oar" in line for line in lines) >= 2
    held_out.write_text(lines[0].split("\t")[0].upper().rstrip(".?!") + "\tbook\n", "utf-8")
    assert set(made("--held-out", str(held_out))) < set(lines)


def test_terms_stand_alone_with_a_capital_letter() -> None:
    terms = SentenceMaker.with_terms([("to save", "speichern"), ("yellow", "gelb"), ("the German", "der Deutsche")])
    assert list(terms) == [("Save", "Speichern"), ("Yellow", "Gelb"), ("The German", "Der Deutsche")]


@given(st.integers())
def test_ordinals_are_counted_alike_in_both_languages(seed: int) -> None:
    english, german = Items(Random(seed)).pair("ordinal")
    count = int(german.removesuffix("."))
    assert english == {1: "1st", 2: "2nd", 3: "3rd", 11: "11th", 12: "12th", 22: "22nd", 53: "53rd"}.get(count, english)
    assert re.fullmatch(rf"{count}(st|nd|rd|th)", english)
