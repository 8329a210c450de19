"""Results leave as data frames, CSV, Markdown and files of units, and come back the same."""

import csv
import io
import json
import sys
import types

import numpy as np
import pytest

import adjoint_lib as al
from adjoint_lib.core.tables import Table
from reference import image_of, small_net

NET = small_net()[1]
IMAGES = np.stack([image_of(NET, seed) for seed in range(3)])
UNITS = {
    "one": lambda: NET.hypersurface(IMAGES[0], "second")[1, 2, 3],
    "a block": lambda: NET.hypersurface(IMAGES[0], "second")[:2, 1:, 3],
    "of a batch": lambda: NET.hypersurface(IMAGES, "out")[1:],
    "scattered": lambda: NET.hypersurface(IMAGES, "second", "RM4").at(np.array([[0, 1, 2, 3]] * 2)),
}


def rows_of(text):
    header, *rows = csv.reader(io.StringIO(text))
    return [dict(zip(header, row, strict=True)) for row in rows]


@pytest.mark.parametrize("make", UNITS.values(), ids=UNITS)
def test_units_come_back_from_their_file(make, tmp_path):
    units, path = make(), tmp_path / "units.npz"
    units.save(path)
    for found in (al.Units.load(path), al.Units.load(path, NET)):
        for name in ("H", "x", "image", "bias", "contributions", "value", "units", "images"):
            np.testing.assert_array_equal(getattr(found, name), getattr(units, name), name)
        assert (found.layer, found.mode, found.sources) == (units.layer, units.mode, units.sources)
        assert found.to_csv() == units.to_csv() and repr(found) == repr(units)
    al.Units.load(path, NET.astype("float32"))  # the same network in another precision
    model = small_net()[0]
    al.models.randomise(model, 5)
    with pytest.raises(al.InputError, match="digest"):
        al.Units.load(path, al.equivalent(model))


CONTRADICTIONS = {
    "a unit too many": lambda a, about: a.update(H=np.repeat(a["H"], 2, 0)),
    "another image": lambda a, about: a.update(x=a["x"][:, 1:]),
    "no unit": lambda a, about: a.update(H=a["H"][:0], x=a["x"][:0], images=a["images"][:0]),
    "NaN": lambda a, about: a.update(x=a["x"] * np.nan),
    "an infinite bias": lambda a, about: a.update(x_b=a["x_b"] / 0),
    "sources that overlap": lambda a, about: about["sources"][1].update(start=0),
    "a source without a name": lambda a, about: about["sources"][1].update(name=7),
    "an axis below zero": lambda a, about: about.update(kept=[-2, -3, 1]),
    "another shape": lambda a, about: about.update(kept=[7]),
    "another format": lambda a, about: about.update(format=2),
    "one array more": lambda a, about: a.update(more=np.zeros(2)),
    "whole numbers for H": lambda a, about: a.update(H=a["H"].astype(int)),
}


@pytest.mark.parametrize("change", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_units_that_contradict_themselves_are_refused(change, tmp_path):
    path = tmp_path / "units.npz"
    NET.hypersurface(IMAGES, "second")[:2, 1:, 1, 3].save(path)
    with np.load(path) as found:
        arrays = dict(found)
    about = json.loads(arrays["about"].tobytes())
    with np.errstate(all="ignore"):
        change(arrays, about)
    arrays["about"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
    np.savez(path, **arrays)
    with pytest.raises(al.DataError, match=r"expected units saved by adjoint_lib"):
        al.Units.load(path)


def test_a_compressed_file_of_units_is_not_decompressed(tmp_path):
    path = tmp_path / "units.npz"
    NET.hypersurface(IMAGES, "second")[...].save(path)
    with np.load(path) as found:
        arrays = dict(found)
    arrays["H"] = np.zeros_like(arrays["H"])
    np.savez_compressed(path, **arrays)
    with pytest.raises(al.DataError, match="compressed"):
        al.Units.load(path)


@pytest.mark.parametrize("path", [None, 3, ".", "nowhere.npz"])
def test_what_is_no_file_of_units_is_refused_in_words(path):
    with pytest.raises(al.DataError, match="expected units saved by adjoint_lib"):
        al.Units.load(path)


def test_a_path_that_cannot_be_written_is_named_as_it_was_given(tmp_path):
    """It was the name of a file beside it that stands for it while it is written."""
    path = tmp_path / "nowhere" / "units.csv"
    with pytest.raises(FileNotFoundError) as caught:
        UNITS["of a batch"]().to_csv(path)
    assert caught.value.filename == str(path)


def test_the_table_of_units_has_a_row_for_each():
    units = UNITS["of a batch"]()
    rows = rows_of(units.to_csv())
    assert [(row["image number"], row["unit"]) for row in rows[:4]] == [
        ("1", "0"), ("1", "1"), ("1", "2"), ("2", "0"),
    ]  # fmt: skip
    for row, value, parts in zip(
        rows, units.value.ravel(), units.contributions.reshape(-1, 4), strict=True
    ):
        assert float(row["value"]) == value
        assert [float(row[name]) for name in units.sources[1:]] == parts[1:].tolist()
    assert "image number" not in rows_of(UNITS["one"]().to_csv())[0]


def test_every_result_goes_out_in_each_form(tmp_path):
    report = al.verify(NET, IMAGES)
    results = [report, UNITS["a block"](), NET.contributions(IMAGES), NET.layers, NET.sources]
    for found in [*results, NET.dimensions(), report.table()]:
        rows = rows_of(found.to_csv())
        table = found if isinstance(found, Table) else found.table()
        assert len(rows) == len(table)
        assert len(found.to_markdown().splitlines()) == len(table) + 2
        found.to_csv(tmp_path / "table.csv")
        assert (tmp_path / "table.csv").read_text() == found.to_csv()


def test_the_numbers_of_a_report_are_not_rounded():
    report = al.verify(NET, IMAGES)
    for row, (name, r) in zip(rows_of(report.to_csv()), report.layers.items(), strict=True):
        assert row["layer"] == name and int(row["units"]) == r.units
        assert float(row["worst"]) == r.worst and float(row["within 0.01"]) == r.share()


def test_markdown_survives_a_bar():
    assert Table(["a|b"], [["1|2"]]).to_markdown() == "| a\\|b |\n| --- |\n| 1\\|2 |"


def test_a_data_frame_has_the_numbers():
    """With pandas itself, where it is installed."""
    pandas = pytest.importorskip("pandas")
    units = UNITS["of a batch"]()
    frame = units.to_dataframe()
    assert isinstance(frame, pandas.DataFrame)
    np.testing.assert_array_equal(frame["value"], units.value.ravel())
    assert al.verify(NET, IMAGES).to_dataframe()["passed"].all()


def test_a_data_frame_is_asked_for_with_numbers_and_names(monkeypatch):
    """With a stand-in for pandas, which is no dependency."""
    made = types.SimpleNamespace(DataFrame=lambda data, columns: (data, columns))
    monkeypatch.setitem(sys.modules, "pandas", made)
    units = UNITS["of a batch"]()
    data, columns = units.to_dataframe()
    assert columns == ["image number", "unit", "value", *units.sources]
    assert [row[2] for row in data] == units.value.ravel().tolist()
    data, columns = al.verify(NET, IMAGES).to_dataframe()
    assert all(isinstance(row[columns.index("worst")], float) for row in data)


def test_without_pandas_the_error_says_what_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    for found in (NET.layers, al.verify(NET, IMAGES)):
        with pytest.raises(al.InputError, match="pip install pandas"):
            found.to_dataframe()
