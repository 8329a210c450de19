"""The explorer's page as a file: whole in itself, exact in its images, of a size that opens."""

import base64
import json
import re

import keras
import numpy as np
import pytest

import adjoint_lib as al
from adjoint_lib.cli.main import main
from adjoint_lib.explorer.page import Samples
from reference import small_net


@pytest.fixture(scope="module")
def net():
    return small_net()[1]


def images_of(net, count=2):
    return np.random.default_rng(0).uniform(size=(count, *net.input_shape))


def test_the_page_is_one_file_that_loads_nothing(net, tmp_path):
    page = net.explorer(images_of(net), labels=[0, 2], names=["a </script>", "b", "c"])
    page.save(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text("utf-8")
    assert not re.search(r"""(src|href)=["'](?!data:)|@import|url\(|fetch\(|https?://""", text)
    assert text.count("<script") == text.count("</script>") == 3  # the network, images, the program
    assert "$" not in re.sub(r"(?s)<script.*</script>", "", text)


def test_a_notebook_shows_the_page_in_a_frame(net):
    shown = net.explorer(images_of(net))._repr_html_()
    assert shown.startswith('<iframe srcdoc="') and "<script" not in shown


def test_pixels_are_kept_as_bytes_and_come_back_to_the_bit():
    for low, high in ((0, 1), (0, 255), (-1, 1)):
        pixels = np.random.default_rng(0).integers(0, 256, (3, 4, 5, 3))
        x = (low + (high - low) * pixels / 255).astype("float32")
        samples = Samples.of(x, None)
        assert (samples.kind, samples.range) == ("uint8", (low, high))
        found = np.frombuffer(base64.b64decode(samples.text), np.uint8).reshape(pixels.shape)
        np.testing.assert_array_equal(found, pixels)
    x = np.random.default_rng(0).normal(size=(2, 5)).astype("float32")
    samples = Samples.of(x, None)
    assert (samples.kind, samples.range) == ("float32", None)
    found = np.frombuffer(base64.b64decode(samples.text), "<f4").reshape(x.shape)
    np.testing.assert_array_equal(found, x)


def test_a_network_too_large_for_a_page_is_refused_with_what_would_fit(net):
    x = images_of(net, 40)
    with pytest.raises(al.TooLarge, match=r"at most 0.02 MB.* 20,\d\d\d|With \d+ images it would"):
        net.explorer(x, max_bytes=20_000)
    with pytest.raises(al.TooLarge, match="In float32 it takes half"):
        net.explorer(x[:1], max_bytes=4_000)
    said = re.search(r"With (\d+) images", str(refused(net, x, 30_000)))
    net.explorer(x[: int(said[1])], max_bytes=30_000)
    assert refused(net, x[: int(said[1]) + 1], 30_000)


def refused(net, x, max_bytes):
    with pytest.raises(al.TooLarge) as error:
        net.explorer(x, max_bytes=max_bytes)
    return error.value


def test_labels_that_are_not_one_an_image_are_refused(net):
    with pytest.raises(al.InputError, match="one label for each of 2 images"):
        net.explorer(images_of(net), labels=[1])
    with pytest.raises(al.InputError, match="expected an image"):
        net.explorer(np.zeros((2, 3, 3, 3)))


def test_the_command_writes_a_page(net, tmp_path, capsys):
    model = keras.Sequential(
        [keras.Input((6, 6, 3)), keras.layers.Conv2D(2, 3, name="c"), keras.layers.ReLU()],
        name="tiny",
    )
    model.save(tmp_path / "my.keras")
    pixels = np.random.default_rng(0).integers(0, 256, (4, 6, 6, 3)).astype(np.uint8)
    np.save(tmp_path / "photos.npy", pixels)
    np.save(tmp_path / "labels.npy", np.arange(4) % 2)
    (tmp_path / "names.txt").write_text("cat\ndog\n")
    given = [f"--{n}={tmp_path / f}" for n, f in FILES.items()]
    assert main(["explore", *given]) == 0
    assert "page.html" in capsys.readouterr().err
    text = (tmp_path / "page.html").read_text("utf-8")
    config = json.JSONDecoder().raw_decode(text.split("adjoint_explorer().start(")[1])[0]
    (images,) = config["datasets"]
    assert config["networks"][0]["name"] == "tiny"
    assert (images["labels"], images["classes"]) == ([0, 1, 0, 1], ["cat", "dog"])
    held = re.search(r'data-adjoint="samples">([^<]*)<', text)[1]
    assert base64.b64decode(held) == pixels.tobytes()
    (tmp_path / "photos.npy").write_bytes(b"nothing")
    assert main(["explore", *given]) == 2
    assert "expected an array of images" in capsys.readouterr().err


FILES = {
    "file": "my.keras",
    "images": "photos.npy",
    "labels": "labels.npy",
    "names": "names.txt",
    "output": "page.html",
}
