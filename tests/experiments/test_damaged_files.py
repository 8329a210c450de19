"""Files that are damaged, contradict themselves or were made to do harm, in every reader.

The fuzz test takes 40 damaged files a reader; more by hand: ADJOINT_FUZZ=2000 pytest <this file>.
"""

import hashlib
import json
import os
import resource
import struct
import zipfile

import keras
import numpy as np
import pytest
import tensorflow as tf

import adjoint_lib as al
from adjoint_book import course
from adjoint_lib import _storage
from adjoint_lib.cli.images import read_images
from adjoint_lib.errors import AdjointError
from adjoint_lib.experiments import results, runs, weights
from adjoint_lib.experiments.training import checkpoint
from adjoint_lib.explorer import export
from adjoint_lib.verification.verify import Plan
from running import tiny_model

COUNT = int(os.environ.get("ADJOINT_FUZZ", "40"))
ALLOWED = 200 << 20  # bytes of memory beyond those at the start

MODEL = tiny_model()
IMAGES = np.random.default_rng(0).random((2, 32, 32, 3), np.float32)
PLAN = Plan(al.equivalent(MODEL), method="tangent")
FACTS = runs._facts(PLAN, len(IMAGES), runs.images_digest(IMAGES), runs.shard_size(PLAN))
ACCEPT = {"a": (300,), "b": (2, 3)}
NOTEBOOK = "# T\n\n> **Time:** 5 minutes\n>\n> **You need:** nothing\n"


def fits(notes, headers):
    found = {name: header.shape for name, header in headers.items()}
    if found != ACCEPT:
        raise al.InputError(f"expected {ACCEPT}, got {found}")


def a_report(path):
    images = np.random.default_rng(0).random((2, 32, 32, 3), np.float32)
    al.verify(al.equivalent(MODEL), images, method="tangent").save(path)


def a_result(path):
    a_report(path)
    origin = {"model": "m", "dataset": "d", "images": {"sha256": "0"}, "time": {"seconds": 1.0}}
    path.write_text(json.dumps({"provenance": origin, **json.loads(path.read_text())}))


def a_checkpoint(path):
    arrays = {"a": np.arange(300.0), "b": np.ones((2, 3), np.float32)}
    checkpoint.save_checkpoint(path, arrays, {"epoch": 1})


def some_units(path):
    al.equivalent(MODEL).hypersurface(IMAGES, al.equivalent(MODEL).layers[-1].name)[:, :2].save(
        path
    )


def a_run(path):
    runs.run(PLAN, IMAGES, path.parent, progress=False)


def a_shard(path):
    """A damaged shard is computed again, so it is no error."""
    with runs.RunFolder.claimed(path.parent, "") as folder:
        if runs._Shards(folder, FACTS).read(0, progress=False) is None:
            raise al.DataError(f"{path} is damaged")


def with_digest(content):
    """An export that was changed on purpose: its digest is made that of its content."""
    first, _, rest = content.partition(b"\n")
    return b"\n".join([first, hashlib.sha256(rest[65:]).hexdigest().encode(), rest[65:]])


READERS = {
    "weights.npz": (
        lambda path: weights.save_weights(MODEL, path, {}),
        lambda path: weights.load_weights(keras.models.clone_model(MODEL), path),
    ),
    "weights.json": (
        lambda path: weights.save_weights(MODEL, path.with_suffix(".npz"), {"seed": 1}),
        lambda path: weights.provenance(path.with_suffix(".npz")),
    ),
    "checkpoint.npz": (a_checkpoint, lambda path: checkpoint.load_checkpoint(path, fits)),
    "report.json": (a_report, al.Report.load),
    "result.json": (a_result, results.read),
    "units.npz": (some_units, al.Units.load),
    "net": (lambda path: al.equivalent(MODEL).export(path), export.read),
    "net with its digest": (lambda path: al.equivalent(MODEL).export(path), export.read),
    "run.json": (a_run, lambda path: runs.run(PLAN, IMAGES, path.parent, progress=False)),
    "shard-000000.json": (a_run, a_shard),
    "model.keras": (MODEL.save, al.load_model),
    "images.npy": (
        lambda path: np.save(path, IMAGES),
        lambda path: read_images("--data", path, (32, 32, 3)),
    ),
    "picture.png": (
        lambda path: path.write_bytes(tf.io.encode_png(np.uint8(255 * IMAGES[0])).numpy()),
        lambda path: read_images("--data", path, (32, 32, 3)),
    ),
    "01-course.ipynb": (
        lambda path: path.write_text(json.dumps({"cells": [{"source": [NOTEBOOK]}]})),
        lambda path: course.chapters(path.parent),
    ),
}


def damaged(whole, random):
    """The bytes with a few of them changed, removed, inserted, repeated or cut off."""
    content = bytearray(whole)
    for _ in range(random.integers(1, 5)):
        at = int(random.integers(0, len(content) + 1))
        size = int(random.integers(1, 9))
        kind = random.integers(0, 5)
        if kind == 0 and at < len(content):
            content[at] = random.integers(0, 256)
        elif kind == 1:
            del content[at : at + size]
        elif kind == 2:
            content[at:at] = random.bytes(size)
        elif kind == 3:
            content[at : at + size] = random.choice([b"\xff" * 8, b"-1", b"1e999", b"9" * 30, b"["])
        elif random.random() < 0.2:
            del content[at:]
    return bytes(content)


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


@pytest.mark.parametrize("name", READERS)
def test_a_damaged_file_is_read_or_refused_in_words(name, tmp_path):
    write, read = READERS[name]
    path = tmp_path / name
    write(path)
    whole = path.read_bytes()
    read(path)
    before, refused = peak(), 0
    for seed in range(COUNT):
        content = damaged(whole, np.random.default_rng([seed, len(name)]))
        path.write_bytes(with_digest(content) if name.endswith("digest") else content)
        try:
            read(path)
        except AdjointError as error:
            refused += 1
            assert str(path.parent) in str(error) or path.name in str(error)
    print(f"{name}: {COUNT} files, {refused} refused, {(peak() - before) >> 20} MB more")
    assert refused > COUNT / 4
    assert peak() - before < ALLOWED


@pytest.mark.parametrize("name", READERS)
def test_what_is_no_file_at_all_is_refused_in_words(name, tmp_path):
    path = tmp_path / name
    path.mkdir()
    with pytest.raises(AdjointError):
        READERS[name][1](path)


def bomb(path, names, shape):
    """An archive of a few MB whose arrays of zeros are of this shape."""
    size = int(np.prod(shape)) * 4
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                header = {"descr": "<f4", "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(file, header)
                for start in range(0, size, 1 << 24):
                    file.write(bytes(min(1 << 24, size - start)))


def test_a_zip_bomb_is_refused_before_it_is_decompressed(tmp_path):
    path = tmp_path / "w.npz"
    bomb(path, ["tiny/c1/kernel"], (300 << 18,))  # 300 MiB in 300 KB
    assert path.stat().st_size < 1 << 20
    before = peak()
    with pytest.raises(al.InputError, match="wrong shape: tiny/c1/kernel"):
        weights.load_weights(MODEL, path)
    with pytest.raises(al.InputError, match="expected"):
        a = tmp_path / "c.npz"
        bomb(a, ["a"], (1 << 18,))
        with zipfile.ZipFile(a, "a") as archive, archive.open("notes.json.npy", "w") as file:
            np.lib.format.write_array(file, np.frombuffer(b"{}", np.uint8))
        checkpoint.load_checkpoint(a, fits)
    assert peak() - before < ALLOWED


def a_picture(kind, pixels):
    """A picture of one colour, in few bytes."""
    rows = tf.zeros((pixels, pixels, 3), tf.uint8)
    if kind == "jpg":
        return tf.io.encode_jpeg(rows, quality=1).numpy()
    if kind == "png":
        return tf.io.encode_png(rows, compression=9).numpy()
    size = (54 + 3 * pixels * pixels, 0, 54, 40, pixels, pixels, 1, 24, *[0] * 6)
    return b"BM" + struct.pack("<IIIIiiHHIIIIII", *size) + bytes(3 * pixels * pixels)


@pytest.mark.parametrize("kind", ["png", "jpg", "bmp"])
def test_a_picture_of_another_size_is_refused_before_it_is_decoded(kind, tmp_path, monkeypatch):
    """Two hundred kilobytes of PNG may be 400 MB of pixels."""
    path = tmp_path / f"picture.{kind}"
    path.write_bytes(a_picture(kind, 32))
    found, _ = read_images("--data", path, (32, 32, 3))
    assert found.shape == (1, 32, 32, 3) and found.max() < 0.02
    path.write_bytes(a_picture(kind, 64))
    monkeypatch.setattr(tf.io, "decode_image", lambda *args: pytest.fail("decoded"))
    with pytest.raises(al.InputError, match=r"32 x 32 pixels, .*, got 64 x 64"):
        read_images("--data", path, (32, 32, 3))


def test_a_model_that_unpacks_to_far_more_than_its_file_is_refused(tmp_path):
    path = tmp_path / "model.keras"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("config.json", bytes(80 << 20))
    with pytest.raises(al.InputError, match="unpack to 83886080"):
        al.load_model(path)


def test_an_array_that_its_header_does_not_describe_is_refused(tmp_path):
    path = tmp_path / "c.npz"
    with zipfile.ZipFile(path, "w") as archive, archive.open("a.npy", "w") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": (3,)}
        np.lib.format.write_array_header_1_0(file, header)
        file.write(bytes(800))
    with pytest.raises(al.DataError, match="longer than its shape"):
        _storage.read_arrays(path, "arrays", "Make it again.", lambda headers: None)


def test_json_that_takes_far_more_memory_than_its_bytes_is_refused(tmp_path):
    path = tmp_path / "report.json"
    path.write_bytes(b'{"a": [' + b"[]," * (8 << 20) + b"[]]}")  # 24 MB, that become 600
    before = peak()
    with pytest.raises(al.DataError, match="parts, more than"):
        al.Report.load(path)
    assert peak() - before < ALLOWED


EXPORTS = {
    "deep": lambda graph: graph.update(name=[[]] * 3),
    "no node": lambda graph: graph.update(nodes=[]),
    "a primitive that is none": lambda graph: graph["nodes"][1]["primitive"].update(kind="object"),
    "an output that is not there": lambda graph: graph.update(outputs=[10**9]),
}


@pytest.mark.parametrize("change", EXPORTS.values(), ids=EXPORTS)
def test_an_export_whose_parts_do_not_fit_is_refused(change, tmp_path):
    path = tmp_path / "net"
    al.equivalent(MODEL).export(path)
    first, _, line, numbers = path.read_bytes().split(b"\n", 3)
    graph = json.loads(line)
    change(graph)
    changed = b"\n".join([first, b"0" * 64, json.dumps(graph).encode(), numbers])
    path.write_bytes(with_digest(changed))
    with pytest.raises(al.DataError, match=r"written by net\.export"):
        export.read(path)


def test_an_export_of_numbers_that_are_not_finite_is_refused_by_its_path(tmp_path):
    path = tmp_path / "net"
    al.equivalent(MODEL).export(path)
    *lines, numbers = path.read_bytes().split(b"\n", 3)
    endless = np.full(len(numbers) // 4, np.inf, "<f4").tobytes()
    path.write_bytes(with_digest(b"\n".join([*lines, endless])))
    with pytest.raises(al.DataError, match=r"net: layer .* NaN or infinite"):
        export.read(path)


def layer_of(stored):
    return next(iter(stored["layers"].values()))


CONTRADICTIONS = {
    "units below zero": lambda r: layer_of(r).update(units=-5),
    "more within than units": lambda r: layer_of(r)["within"].update({"0": 10**9}),
    "an infinite error that passed": lambda r: layer_of(r).update(worst=float("inf")),
    "an infinite bound": lambda r: layer_of(r).update(bound=float("inf")),
    "an error that is no number": lambda r: layer_of(r).update(normwise=float("nan")),
    "no layers": lambda r: r.update(layers={}),
    "no layers and no modes": lambda r: (r.update(layers={}), r["about"].update(modes={})),
    "no images": lambda r: r.update(images=0),
    "a bin before the first": lambda r: layer_of(r)["histogram"].update({"-1": 0}),
    "a count that is true": lambda r: layer_of(r).update(exact=True),
    "a count without end": lambda r: layer_of(r).update(over=10**400),
    "a key too many": lambda r: layer_of(r).update(more=1),
    "a verdict that is wrong": lambda r: r.update(passed=False),
    "a network without name": lambda r: r["about"].update(net=None),
}


@pytest.mark.parametrize("change", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_a_report_that_contradicts_itself_is_refused(change, tmp_path):
    path = tmp_path / "report.json"
    a_report(path)
    stored = json.loads(path.read_text())
    change(stored)
    path.write_text(json.dumps(stored))
    with pytest.raises(al.DataError, match="expected a report"):
        al.Report.load(path)
