"""The runs of the paper's own recipe are shown as far as they have come, whatever that is."""

import json

import pytest

import adjoint_lib as al
from adjoint_book import figures, paper_runs
from adjoint_lib.experiments import paper, resources

PROCESSOR = {"processor": {"name": "Abacus 9", "rounding": "0"}, "epoch": 0, "step": 0}
REPOSITORY = resources.path("paper").parent


def curve(epochs: int) -> list[dict]:
    """Epochs whose training accuracy is their number in thousandths; every second is validated."""
    rows = ({"epoch": n, "train_loss": 2.0, "train_accuracy": n / 1000} for n in range(epochs))
    return [row | {"validation_accuracy": 0.5 if row["epoch"] % 2 else None} for row in rows]


@pytest.fixture
def keep(tmp_path, monkeypatch):
    """Puts the record of a run of VGG7 on CIFAR-10 in place of those in the repository."""
    (tmp_path / "paper").symlink_to(REPOSITORY / "paper")
    monkeypatch.setattr(resources, "_root", lambda: tmp_path)

    def write(epoch: int, step: int, model="vgg7", dataset="cifar10", name="record.json", **more):
        folder = tmp_path / "runs" / f"{model}-{dataset}-paper-0"
        folder.mkdir(parents=True, exist_ok=True)
        recipe = al.training.recipe("paper", model, dataset)
        record = {
            "dataset": dataset,
            "recipe": {"epochs": recipe.epochs, "batch": recipe.batch, "rates": recipe.rates},
            "reached": {"epoch": epoch, "step": step, "train_loss": 2.25, "train_accuracy": 0.2},
            "split": {"training": 45_000, "validation": 5_000},
            "time": {"wall_seconds": 7200, "sittings": 2},
            "sessions": [PROCESSOR, PROCESSOR],
            "curve": curve(epoch),
            "accuracy": {},
        }
        (folder / name).write_text(json.dumps(record | more))

    return write


def test_without_a_run_the_schedule_and_the_command_that_begins_one_are_shown(keep):
    said = paper_runs.state()
    assert "No such run has begun" in said and "--folder data/runs/vgg7-cifar10-paper-0" in said
    assert [row[2] for row in paper_runs.stages()] == ["0 of 300", "0 of 100", "0 of 101"]
    assert not list(paper_runs.first_stages())
    assert len(figures.paper_run().axes) == 2


def test_an_unfinished_run_is_called_so_and_a_newer_record_is_shown(keep):
    keep(320, 45)
    said = paper_runs.state()
    assert "unfinished" in said and "epoch 320 of 501" in said and "144,045 of 225,450" in said
    assert "2.0 hours, in 2 sessions on Abacus 9" in said and "goes on with it" in said
    assert "loss is 2.25 so far, and 20.0 %" in said
    rows = [tuple(row) for row in paper_runs.stages()]
    assert rows[0] == ("0.01", "[0, 299]", "300 of 300", "29.9 %", "50.0 %")
    assert rows[1] == ("0.002", "[300, 399]", "20 of 100", "31.9 %", "50.0 %")
    assert rows[2] == ("0.0005", "[400, 500]", "0 of 101", "", "")
    keep(321, 0)
    assert "epoch 321 of 501" in paper_runs.state() and paper_runs.stages()[1][2] == "21 of 100"


def test_a_finished_run_shows_its_test_accuracy_beside_the_papers(keep, monkeypatch):
    shipped = {"recipe": {"name": "fast"}}
    monkeypatch.setattr(al.models, "trained", lambda model: {"cifar10": shipped})
    keep(500, 0)
    assert paper_runs.judged("vgg7", "cifar10") is shipped
    before = len(figures.paper_run().axes[0].lines)
    test = {"value": 0.9, "correct": 9000, "count": 10_000, "interval_95": [0.894, 0.906]}
    keep(501, 0, name="vgg7-cifar10.json", accuracy={"test": test})
    said = paper_runs.state()
    assert paper_runs.judged("vgg7", "cifar10")["accuracy"] == {"test": test}
    assert "has ended" in said and "90.0 % (89.4 to 90.6)" in said and "unfinished" not in said
    assert f"{paper.accuracy('vgg7', 'cifar10'):.1f} %" in said
    assert [row[2] for row in paper_runs.stages()] == ["300 of 300", "100 of 100", "101 of 101"]
    assert len(figures.paper_run().axes[0].lines) == before + 1  # the star


def test_a_short_run_is_shown_beside_guessing(keep):
    keep(0, 200)
    keep(2, 7, "resnet20", "cifar100")
    few, whole = (tuple(row) for row in paper_runs.first_stages())
    assert few[:6] == ("VGG7", "CIFAR-10", "0.01", "200", "2.25", "2.30")
    assert few[6].startswith("20.0 % (19.5 to 20.6)") and few[7:] == (
        "10 %",
        "",
    )  # of 20,000 images
    assert whole[:6] == ("ResNet20", "CIFAR-100", "0.01", "900", "2.00", "4.61")
    assert whole[6].startswith("0.1 %") and whole[7] == "1 %" and whole[8].startswith("50.0 %")


@pytest.mark.parametrize("model", al.models.MODELS)
@pytest.mark.parametrize("dataset", al.data.CLASS_NAMES)
def test_what_comes_with_the_library_can_be_shown(model, dataset):
    assert f"--folder data/runs/{model}-{dataset}-paper-0" in paper_runs.state(model, dataset) or (
        "has ended" in paper_runs.state(model, dataset)
    )
    assert len(list(paper_runs.stages(model, dataset))) == 3
