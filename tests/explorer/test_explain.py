"""The page about a unit: what it says is so, it loads nothing, and it reads in any light."""

import base64
import html
import json
import re

import keras
import numpy as np
import pytest
import tensorflow as tf

import adjoint_lib as al
from adjoint_lib.explorer.pictures import largest, overlay, picture, signed
from browser import chromium, opened
from reference import explicit_jacobian, image_of, random_model, small_net

MODEL, NET = small_net()
X = image_of(NET)


@pytest.fixture(scope="module")
def page():
    return al.explain(NET, X, ("second", 2, 3, 1))


def rows_of(text):
    """(name, number) of each row of the page's tables, table by table."""
    tables = re.findall(r"<table.*?</table>", text, re.S)
    found = [re.findall(r'"row">(.*?)</th>.*?<td>([^<]*)</td></tr>', each) for each in tables]
    plain = str.maketrans({"−": "-", ",": None})
    return [
        [(html.unescape(name), float(number.translate(plain))) for name, number in rows]
        for rows in found
    ]


def test_the_page_says_what_each_source_gives(page):
    sources, entries, check = rows_of(page.html())
    unit = NET.hypersurface(X, "second")[2, 3, 1]
    expected = dict(zip(unit.sources, unit.contributions.tolist(), strict=True))
    assert [name for name, _ in sources] == ["image", "first"]
    for name, number in sources:
        np.testing.assert_allclose(number, expected[name], rtol=1e-3)
    parts = np.concatenate([X.ravel(), NET.x_b]) * unit.H
    largest = np.sort(np.abs(parts))[::-1][:10]
    np.testing.assert_allclose([abs(number) for _, number in entries], largest, rtol=1e-3)
    for name, number in entries:
        place = json.loads(name[name.index("[") :])
        if name.startswith("x["):
            there = X[tuple(place)] * unit.image[tuple(place)]
        else:
            there = NET.x_b[NET.layer("first").bias][place] * unit.bias[:4][place]
        np.testing.assert_allclose(number, there, rtol=1e-3)
    c = NET.value(X)["second"].numpy()[0, 2, 3, 1]
    np.testing.assert_allclose([check[0][1], check[1][1]], c, rtol=1e-8)


def test_the_check_is_against_the_model_itself():
    page = al.explain(NET, X, ("out", 1))
    (J,) = explicit_jacobian(MODEL, X, [])
    np.testing.assert_allclose(page.units.image, J[1, 0], atol=1e-12)
    bias = MODEL.get_layer("out").bias.numpy()[1]
    score = MODEL(X[None], training=False).numpy()[0, 1]
    np.testing.assert_allclose(page.check.c + bias, score, rtol=1e-12)
    assert page.check.passed and abs(page.check.epsilon) < 1e-12
    assert f"{score:.6g}".replace("-", "−") in page.html()


def test_a_unit_beyond_its_bound_is_told_to_be_so(page):
    wrong = al.explain(NET, X, ("second", 2, 3, 1))
    wrong.check = page.check._replace(ratio=2 * page.check.bound)
    assert "BEYOND" in wrong.html() and "BEYOND" not in page.html()


def test_the_page_is_one_file_that_loads_nothing(page, tmp_path):
    page.save(tmp_path / "unit.html")
    text = (tmp_path / "unit.html").read_text("utf-8")
    assert text == page.html() and "$" not in text and "<script" not in text
    assert not re.search(r"""(src|href)=["'](?!data:)|@import|url\(|https?://""", text)
    assert page._repr_html_().startswith("<iframe srcdoc") and "second" in repr(page)


def test_names_of_layers_are_text_on_the_page():
    def build():
        x = keras.Input((3, 3, 1))
        h = keras.layers.Conv2D(2, 2, name="a<b>&", activation="relu")(x)
        return keras.Model(x, keras.layers.Conv2D(2, 1, name="c")(h))

    net = al.equivalent(random_model(build))
    text = al.explain(net, image_of(net), ("c", 0, 1, 1)).html()
    assert "a&lt;b&gt;&amp;" in text and "a<b>" not in text


@pytest.mark.parametrize("shape", [(7,), (6, 3), (4, 5, 2), (3, 4, 5, 1)])
def test_inputs_of_any_rank_have_pictures(shape):
    layer = keras.layers.Dense(2, name="d")
    net = al.equivalent(random_model(lambda: keras.Sequential([keras.Input(shape), layer])))
    unit = ("d", *(0 for _ in net.layer("d").shape))
    text = al.explain(net, image_of(net), unit).html()
    pictures = [base64.b64decode(each) for each in re.findall(r"base64,([^\"]+)", text)]
    sizes = {tuple(tf.io.decode_png(each).shape[:2]) for each in pictures}
    assert len(pictures) == 3 and len(sizes) == 1


def test_pictures_show_sign_and_size():
    values = np.array([[[1.0, 1.0], [-4.0, 0.0]], [[0.0, 0.0], [2.0, -1.0]]])
    shown = signed(values)
    assert shown[..., 3].tolist() == [[128, 255], [0, 64]]
    red_over_blue = shown[..., 0].astype(int) - shown[..., 2]
    assert red_over_blue[0, 0] > 0 > red_over_blue[0, 1]
    x = np.array([[[0.0], [1.0]], [[0.5], [0.25]]])
    assert picture(x)[..., 0].tolist() == [[0, 255], [128, 64]]
    grey = overlay(x, np.zeros_like(x))
    np.testing.assert_allclose(grey, np.repeat(127.5 + picture(x)[..., :1] / 2, 3, -1), atol=0.5)
    assert largest(np.array([[[1.0, -4], [2, 0.5]]])) == 3
    assert picture(np.zeros((2, 2, 3))).max() == 0


@pytest.mark.parametrize(
    "unit", [("second", 2, 3), ("second",), "out", ("out", 1, 2), ("nothing", 1)], ids=str
)
def test_what_is_no_unit_is_refused_in_words(unit):
    with pytest.raises(al.InputError, match=r"expected one image|unknown layer"):
        al.explain(NET, X, unit)


def test_units_are_plotted():
    pytest.importorskip("matplotlib")
    units = NET.hypersurface(np.stack([X, -X]), "out")[:, :2]
    figure = units.plot()
    assert len(figure.axes) == 12
    for n, axes in enumerate(figure.axes[2::3]):
        widths = sorted(bar.get_width() for bar in axes.patches)
        parts = units.contributions.reshape(4, -1)[n]
        np.testing.assert_allclose(widths, sorted(parts[parts != 0]))
    assert "second [2, 3, 1]" in (NET.hypersurface(X, "second")[2, 3, 1].plot().axes[1].get_title())
    with pytest.raises(al.InputError, match="at most 16"):
        NET.hypersurface(X, "second")[...].plot()


def test_it_reads_in_light_and_dark_on_a_narrow_screen(page, tmp_path):
    path = tmp_path / "unit.html"
    page.save(path)
    with chromium() as browser:
        for scheme, light in (("light", True), ("dark", False)):
            view = {"width": 390, "height": 800}
            with opened(browser, path, color_scheme=scheme, viewport=view) as shown:
                assert shown.evaluate("document.documentElement.scrollWidth") == 390
                colour = "getComputedStyle(document.body).{}.match(/\\d+/g).map(Number)"
                paper, ink = (
                    sum(shown.evaluate(colour.format(each)))
                    for each in ("backgroundColor", "color")
                )
                assert (paper > ink) == light
                assert shown.evaluate("[...document.images].every(i => i.naturalWidth > 0)")
