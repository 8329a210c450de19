"""The explorer in a real browser, from a file, with the network cut: its numbers are Python's."""

import io
import json
import re
from pathlib import Path

import keras
import numpy as np
import pytest
from PIL import Image

import adjoint_lib as al
from adjoint_lib.explorer.export import packed, unpacked
from browser import HOST, axe_core, chromium, opened, settled, shown
from reference import small_net

NETWORKS = {
    "vgg7": ("conv3", "RM2", (5, 9, 17)),
    "resnet20": ("conv10", "RM2", (5, 7, 12)),
    "resnet20-fixup": ("conv15", "RM2", (3, 4, 50)),
}


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def page_of(tmp_path_factory):
    """A network, its images and a page with it, made once."""
    made = {}

    def make(name):
        if name not in made:
            net = al.equivalent(al.models.build(name, classes=10, weights="cifar10"))
            images, labels = al.data.sample("cifar10")
            path = tmp_path_factory.mktemp("explorer") / f"{name}.html"
            net.explorer(images[:3], labels[:3], al.data.CLASS_NAMES["cifar10"]).save(path)
            made[name] = net, images[:3], path
        return made[name]

    return make


def numbers_of(page, **what):
    return page.evaluate("what => window.adjoint.unit(what)", what)


def click(page, layer, y, x, channel):
    """Choose the layer and, by its number, the map; then click the unit in it."""
    page.locator("[data-part=layer]").select_option(layer)
    shown(page, f"layer={layer}")
    page.locator("[data-part=index] input").last.fill(str(channel))
    page.keyboard.press("Enter")
    settled(page, f"map {channel}")
    canvas = page.locator("[data-part=one-canvas]")
    box, (columns, rows) = (
        canvas.bounding_box(),
        canvas.evaluate("c => [c.width, c.height]"),
    )
    at = {"x": box["width"] * (x + 0.5) / columns, "y": box["height"] * (y + 0.5) / rows}
    canvas.click(position=at)
    return settled(page, f"y {y}, x {x}, map {channel}")


@pytest.mark.parametrize("name", NETWORKS)
def test_a_clicked_unit_has_pythons_numbers(browser, page_of, name):
    net, images, path = page_of(name)
    layer, mode, index = NETWORKS[name]
    unit = net.hypersurface(images[0], layer, mode)[index]
    c = net.value(images[:1])[layer].numpy()[(0, *index)]
    with opened(browser, path) as page:
        settled(page)
        said = click(page, layer, *index)
        value, network = (
            float(n.replace("−", "-"))
            for n in re.search(r"value (\S+), .* computes (\S+):", said).groups()
        )
        assert "equal up to rounding" in said
        np.testing.assert_allclose([value, network], [unit.value, c], rtol=2e-4)
        total = page.locator("[data-part=parts-total] td").last.inner_text()
        assert float(total.replace("−", "-")) == pytest.approx(float(unit.value), rel=1e-3)
        rows = page.locator("[data-part=parts] td:last-child").all_inner_texts()
        shown = [float(row.replace("−", "-")) for row in rows]
        given = np.trim_zeros(unit.contributions, "b")  # what comes after the unit is one row
        shown = shown[: len(given)]
        np.testing.assert_allclose(shown, given, rtol=1e-3, atol=1e-3 * np.abs(given).max())
        assert f"layer={layer}&mode={mode}&unit={','.join(map(str, index))}" in page.url


@pytest.mark.parametrize("name", NETWORKS)
def test_programs_get_pythons_numbers_in_float64(browser, page_of, name):
    net, images, path = page_of(name)
    wide = unpacked(packed(net, "float32")).astype("float64")
    layer, mode, index = NETWORKS[name]
    H = wide.hypersurface(images[1].astype(float), layer, mode)[index]
    asked = {"network": net.name, "image": 1, "layer": layer, "mode": mode, "index": index}
    with opened(browser, path) as page:
        found = numbers_of(page, **asked, dtype="float64")
    scale = np.abs(H.H).max()
    np.testing.assert_allclose(found["image"], H.image.ravel(), rtol=0, atol=1e-12 * scale)
    np.testing.assert_allclose(found["bias"], H.bias, rtol=0, atol=1e-12 * scale)
    assert list(found["contributions"]) == H.sources
    np.testing.assert_allclose(
        list(found["contributions"].values()), H.contributions, atol=1e-12 * found["scale"]
    )
    assert abs(found["value"] - found["network_value"]) < 1e-12 * found["scale"]


def test_maps_read_out_what_is_under_the_pointer_and_the_way_back_adds_up(browser, page_of):
    net, images, path = page_of("resnet20")
    value = net.hypersurface(images[0], "conv4")[9, 4, 3].value
    c = net.value(images[:1])["conv4"].numpy()[0]
    with opened(browser, path, "#net=resnet20&layer=conv4&mode=RM2&unit=9,4,3") as page:
        settled(page, "y 9, x 4, map 3")
        canvas = page.locator("[data-part=one-canvas]")
        size = canvas.bounding_box()["width"] / 32
        canvas.hover(position={"x": 20.5 * size, "y": 7.5 * size})
        (said,) = page.locator("[data-part=pointed]").all_inner_texts()
        name, shown_c = said.rstrip(".").split(": ")
        assert name == "Map 3, (7, 20)"
        assert float(shown_c.replace("−", "-")) == pytest.approx(c[7, 20, 3], rel=1e-3, abs=1e-5)
        stops = page.locator("[data-part=way] li").all_inner_texts()
    assert [stop.split("\n")[0] for stop in stops] == [
        "into conv4",
        "into conv3",
        "into conv1",
        "x",
    ]
    for stop in stops:
        here, biases = (
            float(re.search(rf"{part} (\S+)", stop)[1].replace("−", "-"))
            for part in ("gives", "biases")
        )
        assert here + biases == pytest.approx(float(value), abs=2e-3 * (abs(here) + abs(biases)))


def test_a_units_value_is_found_at_every_image(browser, page_of):
    net, images, path = page_of("vgg7")
    expected = net.value(images)["conv5"].numpy()[:, 3, 4, 17]
    with opened(browser, path, "#net=vgg7&layer=conv5&mode=RM2&unit=3,4,17") as page:
        settled(page, "map 17")
        page.locator("[data-part=at-images]").click()
        page.wait_for_function(f"{PART}('at-images-said').textContent.includes('smallest')")
        said = page.locator("[data-part=at-images-said]").inner_text()
        numbers = page.locator("[data-part=samples] span").all_inner_texts()
        found = [float(each.replace("−", "-")) for each in numbers]
        np.testing.assert_allclose(found, expected, rtol=1e-2)
        most, least = int(np.argmax(expected)), int(np.argmin(expected))
        assert f"largest at image {most}: " in said and f"smallest at image {least}: " in said
        page.locator("[data-part=one]").press("PageDown")  # of another unit, they say nothing
        settled(page, "map 18")
        assert page.locator("[data-part=samples] span").all_inner_texts() == ["", "", ""]
        page.evaluate(f"{PART}('at-images').click(); {PART}('at-images').click()")
        page.wait_for_function(f"{PART}('at-images').textContent.startsWith('Its value')")
        assert page.locator("[data-part=at-images-said]").inner_text() == ""


def test_the_keyboard_is_enough(browser, page_of):
    net, images, path = page_of("vgg7")
    with opened(browser, path, "#net=vgg7&layer=conv4&mode=RM2&unit=3,4,5") as page:
        settled(page, "y 3, x 4, map 5")
        sliders = [page.get_by_role("slider", name=name) for name in ("Brightness", "z = k")]
        said = [slider.get_attribute("aria-valuetext") for slider in sliders]
        assert said == ["× 1.00", "k = 1/8"]
        seen = []
        for _ in range(60):  # to the large map, however many stops lie before it
            page.keyboard.press("Tab")
            seen.append(page.evaluate(FOCUSED))
            if seen[-1] == "one":
                break
        assert seen[-1] == "one", seen
        for key in ("ArrowRight", "ArrowDown", "PageDown"):
            page.keyboard.press(key)
        said = settled(page, "y 4, x 5, map 6")
    value = float(re.search(r"value (\S+),", said)[1].replace("−", "-"))
    expected = net.hypersurface(images[0], "conv4")[4, 5, 6].value
    assert value == pytest.approx(float(expected), rel=2e-4, abs=1e-5)


FOCUSED = f"{HOST}.shadowRoot.activeElement?.dataset.part ?? ''"


def test_the_address_brings_back_what_was_shown(browser, page_of):
    net, images, path = page_of("vgg7")
    address = "#net=vgg7&image=2&layer=fc&mode=RM0&unit=3&against=8&k=0.5&light=0.75"
    with opened(browser, path, address) as page:
        said = settled(page, "unit 3")
        assert {*address[1:].split("&")} < {*page.url.split("#")[1].split("&")}
        text = page.locator("[data-part=flips]").inner_text()
    H = net.hypersurface(images[2] * np.float32(0.75), "fc")[[3, 8][0]]
    other = net.hypersurface(images[2] * np.float32(0.75), "fc")[8]
    value = float(re.search(r"value (\S+),", said)[1].replace("−", "-"))
    assert value == pytest.approx(float(H.value - other.value), rel=2e-4)
    assert re.search(r"^[1-9][\d,]* of [\d,]+ ReLUs", text), text


def test_what_cannot_be_answered_is_rejected_in_words(browser, page_of):
    _, _, path = page_of("vgg7")
    asked = "what => adjoint.unit(what).then(() => 'an answer', error => error.message)"
    with opened(browser, path) as page:
        for what, expected in REFUSED:
            found = page.evaluate(asked, {"layer": "conv5", "index": [3, 4, 17], **what})
            assert expected in found, (what, found)


REFUSED = [
    ({"network": "vgg8"}, 'expected network as one of vgg7; got "vgg8"'),
    ({"dataset": "mnist"}, 'expected dataset as one of images; got "mnist"'),
    ({"layer": "conv6"}, 'unknown layer "conv6"'),
    ({"index": [8, 0, 0]}, "expected an index into units of shape 8,8,96"),
    ({"index": [0, 0]}, "expected an index into units of shape 8,8,96"),
    ({"index": [0, 0, 0.5]}, "expected an index into units of shape 8,8,96"),
    ({"mode": "RM0"}, "mode RM0 does not fit layer 'conv5'"),
    ({"layer": "fc", "index": [3], "mode": "RM2"}, "mode RM2 does not fit layer 'fc'"),
    ({"image": 3}, "expected image as a whole number from 0 to 2; got 3"),
    ({"image": "1"}, 'expected image as a whole number from 0 to 2; got "1"'),
    ({"dtype": "float16"}, 'expected dtype float32 or float64, got "float16"'),
    ({"k": 0}, "expected a finite k > 0"),
    (
        {"picture": 1},
        "expected network, dataset, image, layer, mode, index, dtype and k; got picture",
    ),
]


def test_a_notebooks_frame_computes_in_a_sandbox(browser, tmp_path):
    """Some notebooks show what a cell displays in a frame that may do nothing but run scripts."""
    net = small_net()[1]
    x = np.random.default_rng(0).normal(size=(2, *net.input_shape)).astype("float32")
    frame = net.explorer(x)._repr_html_().replace("<iframe", '<iframe sandbox="allow-scripts"')
    (tmp_path / "notebook.html").write_text(f"<!doctype html><title>Notebook</title>{frame}")
    with opened(browser, tmp_path / "notebook.html") as page:
        said = settled(page.frames[1])
        assert not page.frames[1].locator("[data-part=address]").is_visible()  # it has no address
    assert "equal up to rounding" in said


FORBIDDEN = """window.Worker = function () {
  this.postMessage = () => {};
  setTimeout(() => this.onerror({message: "forbidden"}));
}"""


def test_where_workers_are_forbidden_the_page_itself_computes(browser, page_of):
    net, images, path = page_of("vgg7")
    unit = net.hypersurface(images[1], "conv2")[3, 4, 5]
    with opened(browser, path, script=FORBIDDEN) as page:
        settled(page)
        found = numbers_of(page, image=1, layer="conv2", index=[3, 4, 5])
    assert found["value"] == pytest.approx(float(unit.value), abs=1e-6 * found["scale"])


def test_a_damaged_page_says_so_in_words(browser, page_of, tmp_path):
    text = page_of("vgg7")[2].read_text("utf-8")
    start = text.index('data-adjoint="network">') + len('data-adjoint="network">')
    for place, cut in ((300_000, ""), (0, ""), (300_000, text[start + 300_000 :][:7])):
        at = start + place
        other = "" if cut else "A" if text[at] != "A" else "B"
        damaged = text[:at] + other + text[at + max(1, len(cut)) :]
        (tmp_path / "damaged.html").write_text(damaged, "utf-8")
        with opened(browser, tmp_path / "damaged.html") as page:
            page.wait_for_function(f"!{PART}('failure').hidden")
            said = page.locator("[data-part=failure]").inner_text()
            assert said.startswith("The numbers of vgg7 in this page cannot be read: ")
            assert page.locator("[data-part=sum]").inner_text() == "Nothing could be computed."


def test_any_network_has_a_page_of_the_readers_own(browser, tmp_path):
    net = small_net()[1]
    x = np.random.default_rng(0).normal(size=(2, *net.input_shape))
    net.explorer(x, dtype="float64").save(tmp_path / "own.html")
    x = x.astype("float32").astype(float)
    unit = net.hypersurface(x[1], "second", "RM4")[2, 1, 3, 4]
    with opened(browser, tmp_path / "own.html") as page:
        settled(page)
        asked = {"image": 1, "layer": "second", "mode": "RM4", "index": [2, 1, 3, 4]}
        found = numbers_of(page, **asked, dtype="float64")
        with pytest.raises(Exception, match="whole number from 0 to 1"):
            numbers_of(page, image=2)
    assert found["value"] == pytest.approx(float(unit.value), rel=1e-12)
    np.testing.assert_allclose(found["image"], unit.image.ravel(), rtol=0, atol=1e-12)


def test_mobilenet_and_a_unet_have_pages(browser, tmp_path):
    small = {"alpha": 0.25, "weights": None, "classes": 5, "classifier_activation": None}
    mobile = keras.applications.MobileNet((32, 32, 3), **small)
    rng = np.random.default_rng(1)
    for model, layer, index in ((mobile, "conv_pw_5", (2, 3, 7)), (unet(), "up", (9, 4, 1))):
        al.models.randomise(model, 0)
        net = al.equivalent(model)
        x = rng.integers(0, 256, (2, *net.input_shape)).astype("float32") / 255
        net.explorer(x).save(tmp_path / "page.html")
        unit = net.hypersurface(x[1], layer)[index]
        with opened(browser, tmp_path / "page.html") as page:
            settled(page)
            found = numbers_of(page, image=1, layer=layer, index=index)
        scale = np.abs(unit.image).max()
        np.testing.assert_allclose(found["image"], unit.image.ravel(), rtol=0, atol=1e-4 * scale)
        assert abs(found["value"] - unit.value) < 1e-5 * found["scale"]


def test_a_series_is_wide_enough_to_be_clicked(browser, tmp_path):
    layers = keras.layers
    model = keras.Sequential(
        [
            layers.Input((96, 2)),
            layers.Conv1D(5, 3, activation="relu"),
            layers.MaxPooling1D(2),
            layers.Conv1D(4, 3, name="last"),
        ]
    )
    al.models.randomise(model, 0)
    net = al.equivalent(model)
    x = np.random.default_rng(0).normal(size=(2, 96, 2)).astype("float32")
    net.explorer(x).save(tmp_path / "series.html")
    with opened(browser, tmp_path / "series.html", f"#net={net.name}&layer=last&unit=9,3") as page:
        settled(page, "x 9, map 3")
        for name in ("x-canvas", "h-canvas", "one-canvas"):
            box = page.locator(f"[data-part={name}]").bounding_box()
            assert box["height"] >= box["width"] / 4 - 1
        field, x_box = (
            page.locator(f"[data-part={n}]").bounding_box() for n in ("x-field", "x-canvas")
        )
        assert field["width"] == pytest.approx(x_box["width"] * 8 / 96, abs=4)  # 2 (3 - 1) + 1 + 3
        canvas = page.locator("[data-part=maps-canvas]")
        box = canvas.bounding_box()
        canvas.click(position={"x": box["width"] * 30.5 / 45, "y": box["height"] * 1.5 / 4})
        said = settled(page, "x 30, map 1")
    value = float(re.search(r"value (\S+),", said)[1].replace("−", "-"))
    unit = net.hypersurface(x[0], "last")[30, 1]
    assert value == pytest.approx(float(unit.value), rel=1e-3, abs=1e-5)


def unet():
    """Down, up again, and what was before beside it."""
    layers = keras.layers
    x = layers.Input((16, 16, 3))
    fine = layers.Conv2D(4, 3, padding="same", activation="relu")(x)
    coarse = layers.MaxPooling2D()(fine)
    coarse = layers.Conv2D(6, 3, padding="same", activation="relu")(coarse)
    up = layers.Conv2DTranspose(4, 2, strides=2, name="up")(coarse)
    both = layers.Concatenate()([fine, layers.ReLU()(up)])
    return keras.Model(x, layers.Conv2D(2, 1, name="mask")(both))


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_stands_out_of_the_page_and_axe_finds_nothing_serious(
    browser, page_of, width, theme
):
    _, _, path = page_of("vgg7")
    size = {"width": width, "height": 800}
    with opened(browser, path, viewport=size, color_scheme=theme) as page:
        settled(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.evaluate(axe_core())
        found = page.evaluate("axe.run().then(found => found.violations)")
        bad = [v for v in found if v["impact"] in ("serious", "critical")]
        assert not bad, [(v["id"], [n["html"] for n in v["nodes"]]) for v in bad]


def saved(page, button) -> bytes:
    """What a button saves."""
    with page.expect_download() as started:
        page.locator(f"[data-part={button}]").click()
    return Path(started.value.path()).read_bytes()


def test_a_picture_of_ones_own_is_cropped_and_scaled_as_in_training(browser, page_of, tmp_path):
    net, _, path = page_of("vgg7")
    pixels = np.random.default_rng(0).integers(0, 256, (32, 32, 3)).astype(np.uint8)
    wide = np.full((64, 192, 3), 255, np.uint8)  # its middle, twice as large
    wide[:, 64:128] = pixels.repeat(2, 0).repeat(2, 1)
    Image.fromarray(wide).save(tmp_path / "own.png")
    (tmp_path / "text.png").write_text("no picture")
    with opened(browser, path, "#net=vgg7&layer=conv1&unit=7,8,9") as page:
        settled(page, "y 7, x 8, map 9")
        page.locator("[data-part=own]").set_input_files(tmp_path / "text.png")
        page.wait_for_function(f"{PART}('failure').textContent.includes('expected a picture')")
        page.locator("[data-part=own]").set_input_files(tmp_path / "own.png")
        page.wait_for_function(f"{PART}('image-name').textContent.startsWith('Your picture')")
        page.wait_for_function("location.hash.includes('own=')")
        address = "#" + page.url.split("#")[1]
    with opened(browser, path, address) as page:  # the address holds the picture
        settled(page, "y 7, x 8, map 9")
        found = json.loads(saved(page, "json"))
        H = np.load(io.BytesIO(saved(page, "npy")))
        picture = Image.open(io.BytesIO(saved(page, "png")))
    assert picture.format == "PNG" and picture.width > 3 * 256
    x = (pixels / 255).astype("float32")
    np.testing.assert_array_equal(np.float32(found["x"]), x.ravel())
    unit = net.hypersurface(x, "conv1")[7, 8, 9]
    assert found["value"] == pytest.approx(float(unit.value), rel=1e-4, abs=1e-5)
    np.testing.assert_allclose(H, unit.H, rtol=0, atol=1e-5 * np.abs(unit.H).max())
    np.testing.assert_array_equal(H, np.float32(found["image"] + found["bias"]))


PART = "(part => document.querySelector('[data-adjoint-explorer]').shadowRoot" + (
    ".querySelector(`[data-part=${part}]`))"
)


def test_the_brush_paints_by_keyboard_and_by_mouse(browser, page_of):
    net, images, path = page_of("vgg7")
    with opened(browser, path, "#net=vgg7&layer=conv0&unit=16,16,3") as page:
        settled(page, "y 16, x 16, map 3")
        page.locator("[data-part=brush]").check()
        page.locator("[data-part=brush-size]").select_option("1")
        page.get_by_role("button", name="white").click()
        page.locator("[data-part=input]").focus()
        page.keyboard.press("ArrowRight")  # from the middle
        page.keyboard.press("Space")
        shown(page, f"paint=w{BASE36[PAINTED[1]]}")
        canvas = page.locator("[data-part=x-canvas]")
        size = canvas.bounding_box()["width"] / 32
        canvas.click(position={"x": 15.5 * size, "y": 16.5 * size})
        shown(page, f"paint=w{BASE36[PAINTED[0]]}.{BASE36[PAINTED[1]]}")
        assert page.evaluate(f"{PART}('image-name').textContent").endswith("painted on")
        found = json.loads(saved(page, "json"))
        page.locator("[data-part=unpaint]").click()
        page.wait_for_function("!location.hash.includes('paint=')")
    x = images[0].copy()
    x[16, [15, 17]] = 1
    np.testing.assert_array_equal(np.float32(found["x"]), x.ravel())
    c = net.value(x)["conv0"][0, 16, 16, 3]
    assert found["network_value"] == pytest.approx(float(c), rel=1e-4)


PAINTED = (16 * 32 + 15, 16 * 32 + 17)  # pixels
BASE36 = {PAINTED[0]: "en", PAINTED[1]: "ep"}  # 16 * 32 + 15 = 14 * 36 + 23
