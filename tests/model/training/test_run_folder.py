"""Files that a run keeps and files that it removes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from model.training.settings import DataFile
from model.training.trainer import Trainer
from tests.model.training.toy_runs import stop_after, toy_settings, train


def test_a_folder_of_other_settings_is_refused(data: Path, tmp_path: Path) -> None:
    train(toy_settings(data, max_steps=3), tmp_path / "run")
    with pytest.raises(ValueError, match=r"belongs to another run .*dropout was 0\.1 and is 0\.2"):
        Trainer(toy_settings(data, max_steps=3, dropout=0.2), tmp_path / "run")


@pytest.mark.parametrize("damage", [lambda whole: whole[: len(whole) // 2], lambda _: b"", lambda _: b"not a state"])
def test_a_damaged_state_is_refused_with_the_way_out(
    damage: Callable[[bytes], bytes], data: Path, tmp_path: Path
) -> None:
    settings = toy_settings(data, max_steps=3)
    train(settings, tmp_path / "run")
    state = tmp_path / "run" / "state.pt"
    state.write_bytes(damage(state.read_bytes()))
    with pytest.raises(ValueError, match=r"state\.pt is damaged.*remove the file to start again.*--init"):
        Trainer(settings, tmp_path / "run")
    state.unlink()
    train(settings, tmp_path / "run")


def test_an_attempt_that_fails_leaves_its_folder_to_other_settings(data: Path, unseen: Path, tmp_path: Path) -> None:
    missing, two = tmp_path / "missing.tsv", tmp_path / "two.tsv"
    two.write_text("ant\tant\nbee\tbee\n", "utf-8")
    failing = [
        (toy_settings(missing), "missing.tsv"),
        (toy_settings(data, validation=str(missing)), "missing.tsv"),
        (toy_settings(data, vocab_size=8000), "--vocab-size"),
        (toy_settings(data, data=(DataFile(str(data)), DataFile(str(two), 0.2))), "two.tsv@0.2: .* 2 pairs is empty"),
    ]
    for settings, reason in failing:
        with pytest.raises((ValueError, OSError), match=reason):
            Trainer(settings, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    train(toy_settings(data), tmp_path / "run")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda text: text + "ant\tant\n", r"changing\.tsv had 900 pairs and has 901"),
        (lambda text: text.replace("ant", "bee", 1), "equal numbers of pairs, different tokens"),
    ],
)
def test_a_run_does_not_go_on_with_other_data(
    change: Callable[[str], str], reason: str, data: Path, tmp_path: Path
) -> None:
    changing = tmp_path / "changing.tsv"
    text = data.read_text("utf-8")
    changing.write_text(text, "utf-8")
    settings = toy_settings(changing)
    train(settings, tmp_path / "run", stop_after(4))
    changing.write_text(change(text), "utf-8")
    with pytest.raises(ValueError, match=f"was trained on other data .*{reason}"):
        Trainer(settings, tmp_path / "run")
    changing.write_text(text, "utf-8")
    assert Trainer(settings, tmp_path / "run").position.step == 4
