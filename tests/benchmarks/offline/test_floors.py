import tomllib
from pathlib import Path

from benchmarks.offline import __main__ as offline
from benchmarks.offline import start

FLOORS = Path(offline.__file__).with_name("floors.toml")
RUNS = {
    offline.KVASIR: [offline.Run(2.0, 3.0, 4.0), offline.Run(1.0, 2.0, 2.0), offline.Run(4.0, 5.0, 8.0)],
    offline.CTRANSLATE2: [offline.Run(3.0, 3.0, 4.0), offline.Run(2.0, 2.0, 2.0), offline.Run(2.0, 5.0, 8.0)],
}


def test_ratios_are_medians_of_repetitions() -> None:
    assert offline.seconds_ratios(RUNS) == {offline.KVASIR: 1.0, offline.CTRANSLATE2: 1.5}


def test_only_measured_ratios_below_their_floor_are_reported() -> None:
    floors = {"beam-1": {offline.CTRANSLATE2: 1.6, offline.ENGINE: 0.9}, "beam-4": {offline.CTRANSLATE2: 1.5}}
    [missed] = offline.below_floors(offline.seconds_ratios(RUNS), 1, floors)
    assert missed.startswith("beam size 1, CTranslate2 with SentencePiece: 1.50 times")
    assert not offline.below_floors(offline.seconds_ratios(RUNS), 4, floors)


def test_the_file_has_floors_for_what_is_measured() -> None:
    floors = tomllib.loads(FLOORS.read_text("utf-8"))
    assert set(floors.pop("start")) == {start.TRANSLATE, start.SERVE}
    assert set(floors) == {"beam-1", "beam-4"}
    assert all(set(each) == {offline.CTRANSLATE2, offline.ENGINE} for each in floors.values())
