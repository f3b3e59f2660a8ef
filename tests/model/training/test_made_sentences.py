import lzma
import re
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from model.training import made_sentences
from model.training.made_sentences import Evidence, Filling, Grammar, Items, Noun, SentenceMaker, read_nouns, rows

SLOT = re.compile(r"\{([^{}]+)\}")
NOUN_SLOT = re.compile(r"\b[NM]s?$")
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


def _table(folder: Path, text: str = TABLE, name: str = "nouns.tsv") -> Path:
    path = folder / name
    if path.suffix == ".xz":
        path.write_bytes(lzma.compress(text.encode()))
    else:
        path.write_text(text, "utf-8")
    return path


def _adjectives(**predicates: str) -> dict[str, dict[str, str]]:
    return {
        name: {"english": name, "predicate": predicates.get(name, "-"), "stem": stem}
        for name, stem in (("A", "blau"), ("B", "matt"))
    }


def _german(slot: str, noun: Noun) -> str:
    return Grammar().german(slot, Filling({"N": noun}, _adjectives()))


def _english(slot: str, noun: Noun) -> str:
    return Grammar().english(slot, Filling({"N": noun}, _adjectives()))


def test_frames_have_the_same_nouns_and_items_on_both_sides() -> None:
    for frame in rows("frames"):
        english, german = (
            [slot for slot in SLOT.findall(frame[side]) if ":" not in slot] for side in ("english", "german")
        )
        if frame["noun"] == "-":
            assert sorted(english) == sorted(german), frame
            continue
        nouns = [sorted(match[0] for slot in side if (match := NOUN_SLOT.search(slot))) for side in (english, german)]
        assert nouns[0] == nouns[1], frame
        assert bool(frame["second"]) == any("M" in noun for noun in nouns[0]), frame


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


@given(st.sampled_from([row for row in rows("determiners") if row["endings"] != "pronoun"]))
def test_determiners_agree_with_the_paradigm(row: made_sentences.Row) -> None:
    if row["case"] == "dative":
        assert row["masculine"] == row["neuter"]
    if row["case"] == "accusative":
        nominative = next(
            (
                other
                for other in rows("determiners")
                if other["case"] == "nominative" and other["feminine"] == row["feminine"]
            ),
            row,
        )
        assert [nominative[column] for column in COLUMNS[1:]] == [row[column] for column in COLUMNS[1:]]


def test_a_pronoun_stands_for_its_noun() -> None:
    assert [_german("er:N", NOUNS[gender]) for gender in "mfn"] == ["er", "sie", "es"]
    assert _german("dem:N", NOUNS["f"]) == "der"


def test_contractions_hold_for_the_gender() -> None:
    assert [_german("zum N", NOUNS[gender]) for gender in "mfn"] == ["zum Kessel", "zur Harke", "zum Ruder"]
    assert [_german("in-den N", NOUNS[gender]) for gender in "mfn"] == ["in den Kessel", "in die Harke", "ins Ruder"]


@pytest.mark.parametrize(
    ("word", "article"),
    [("oar", "an"), ("unicycle", "a"), ("umpire", "an"), ("hourglass", "an"), ("European", "a"), ("yak", "a")],
)
def test_the_english_article_follows_the_sound(word: str, article: str) -> None:
    noun = Noun(word, "Xa", "f", f"{word}s", "Xas", 4.0, "thing", "Xa")
    assert _english("a N", noun) == f"{article} {word}"


def test_weak_nouns_have_forms_of_their_own_and_others_have_not(tmp_path: Path) -> None:
    lines = ["nephew\tNeffe\tm\tnephews\tNeffen\t4", "lake\tSee\tm\tlakes\tSeen\t4", "dean\tDekan\tm\tdeans\tDekane\t4"]
    lines += ["soul\tGeist\tm\t\t\t4", "will\tWille\tm\t\t\t4", "witness\tZeuge\tm\twitnesses\tZeugen\t4"]
    found = {noun.german: noun.oblique for noun in read_nouns(_table(tmp_path, "\n".join(lines) + "\n"))}
    assert found == {
        "Neffe": "Neffen", "See": "See", "Dekan": "Dekan", "Geist": "Geist", "Wille": None, "Zeuge": "Zeugen",
    }  # fmt: skip


def test_plurals_of_compounds_and_nouns_that_are_adjectives_are_left_out(tmp_path: Path) -> None:
    lines = ["coal\tKohle\tf\tlumps of coal\tBriketts\t4", "patient\tKranker\tm\tpatients\tKranke\t4"]
    lines += ["running\tLaufen\tn\t\t\t4", "pliers\tZange\tf\t\t\t4"]
    (noun,) = read_nouns(_table(tmp_path, "\n".join(lines) + "\n"))
    assert (noun.english, noun.english_plural, noun.german_plural) == ("coal", "", "")


def test_a_compound_with_another_gender_than_its_last_part_is_left_out(tmp_path: Path) -> None:
    lines = ["a\tHoftor\tn\t\t\t4", "b\tWandregal\tn\t\t\t4", "c\tRegal\tn\t\t\t4", "d\tEckregal\tm\t\t\t4"]
    found = read_nouns(_table(tmp_path, "\n".join(lines) + "\n"))
    assert [noun.german for noun in found] == ["Hoftor", "Wandregal", "Regal"]


def test_the_end_of_a_compound_decides_what_it_names(tmp_path: Path) -> None:
    lines = ["a\tDachfenster\tn\t\t\t4", "b\tGarten\tm\t\t\t4", "c\tEinfluss\tm\t\t\t4", "d\tFluss\tm\t\t\t4"]
    assert [noun.kind for noun in read_nouns(_table(tmp_path, "\n".join(lines) + "\n"))] == [
        "thing", "place", "other", "place",
    ]  # fmt: skip


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


def _made(folder: Path, *arguments: str, table: str = "nouns.tsv") -> list[str]:
    output = folder / "made.tsv"
    words = [str(_table(folder, name=table)), str(output), "--num-items", "2", "--num-frames", "1", *arguments]
    result = CliRunner().invoke(made_sentences.command, words)
    assert result.exit_code == 0, result.output
    lines = output.read_text("utf-8").splitlines()
    assert f"{len(lines)} pairs" in result.output
    return lines


def test_the_command_makes_different_pairs_again_from_one_seed(tmp_path: Path) -> None:
    lines = _made(tmp_path)
    assert lines == _made(tmp_path, table="nouns.tsv.xz")
    assert lines != _made(tmp_path, "--seed", "2")
    assert len(lines) == len(set(lines))
    assert all(line.count("\t") == 1 for line in lines)
    assert sum("oar" in line for line in lines) >= 2


def test_everyday_nouns_come_before_those_of_the_table(tmp_path: Path) -> None:
    everyday = read_nouns(made_sentences.EVERYDAY_NOUNS)
    assert len(everyday) == made_sentences.EVERYDAY_NOUNS.read_text("utf-8").count("\n")
    wrong = "".join(f"{noun.english}\tXylophon\tn\t\t\t7\n" for noun in everyday)
    path = _table(tmp_path, wrong)
    result = CliRunner().invoke(
        made_sentences.command, [str(path), str(tmp_path / "out"), "--num-items", "1", "--num-frames", "1"]
    )
    assert result.exit_code == 0
    made = (tmp_path / "out").read_text("utf-8")
    assert "Xylophon" not in made
    assert all(noun.german in made for noun in everyday)


def test_held_out_sentences_are_not_made(tmp_path: Path) -> None:
    lines = _made(tmp_path)
    held_out = tmp_path / "held-out.tsv"
    held_out.write_text(lines[0].split("\t")[0].upper().rstrip(".?!") + "\tbook\n", "utf-8")
    assert lines[0] not in _made(tmp_path, "--held-out", str(held_out))
