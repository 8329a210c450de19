"""The explorer in the book: its links name units that exist, its scripts are there and small."""

import base64
import functools
import re
from urllib.parse import parse_qsl

import numpy as np
import pytest

import adjoint_lib as al
from adjoint_book.build import check_site, explorer
from adjoint_lib.core.hypersurface import MODES
from adjoint_lib.explorer.bundle import base64_of
from browser import chromium, opened, settled
from repository import ROOT, text

PAGES = sorted({*(ROOT / "book").glob("*.ipynb"), *(ROOT / "book").glob("*.md")})
STATE = re.compile(r"explorer(?:\.md#|: )(net=[^)\s\"\\]+)")
STATES = [
    (path.name, state) for path in PAGES for state in STATE.findall(text(f"book/{path.name}"))
]


@functools.cache
def net(name):
    return al.equivalent(al.models.build(name))


def test_the_preface_the_modes_the_maps_and_what_they_show_have_an_explorer():
    pages = {name[:2] for name, _ in STATES}
    assert {"00", "06", "14", "16", "ex"} <= pages


@pytest.mark.parametrize(("page", "state"), STATES)
def test_a_link_names_a_unit_that_exists(page, state):
    said = dict(parse_qsl(state, strict_parsing=True))
    assert said["net"] in explorer.NETWORKS and said["data"] in explorer.DATASETS
    assert 0 <= int(said["image"]) < explorer.IMAGES
    layer = net(said["net"]).layer(said["layer"])
    assert said["mode"] in layer.modes
    for index in {"unit", "against"} & said.keys():
        entries = [int(n) for n in said[index].split(",")]
        for entry, size in zip(entries, MODES[said["mode"]].shape(layer), strict=True):
            assert 0 <= entry < size
    assert float(said.get("light", 1)) >= 0 and float(said.get("k", 1)) > 0
    usual = {"net", "data", "image", "layer", "mode", "unit", "against", "k", "light"}
    assert said.keys() <= usual


def test_the_scripts_of_a_site_are_checked(tmp_path):
    (tmp_path / "explorer.html").write_text('<div data-adjoint-explorer="net=vgg7"></div>')
    (tmp_path / "page.html").write_text(
        '<a href="explorer.html#net=vgg7">good</a><a href="page.html#net=vgg7">bad</a>'
    )
    found = list(check_site.problems(tmp_path))
    assert sum("link to page.html#net=vgg7" in problem for problem in found) == 1
    assert sum("the explorer loads it" in problem for problem in found) == len(explorer.FILES)
    assert len(found) == 1 + len(explorer.FILES)
    folder = tmp_path / explorer.FOLDER
    folder.mkdir(parents=True)
    for name in explorer.FILES:
        (folder / f"{name}.js").write_text("")
    assert len(list(check_site.problems(tmp_path))) == 1
    (folder / "explorer.js").write_text('load("https://cdn.example/x.js")')
    assert sum("another host" in problem for problem in check_site.problems(tmp_path)) == 1


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A site with the scripts of VGG7, and a page with an explorer far down."""
    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(explorer, "NETWORKS", {"vgg7": "VGG7"})
        explorer.write(folder)
    (folder / "page.html").write_text(
        '<!doctype html><html data-theme="dark"><body><div style="height: 5000px"></div><div '
        'data-adjoint-explorer="net=vgg7&amp;layer=conv2&amp;unit=1,2,3" data-address="x.html">'
        '<a href="x.html">a link</a></div>'
        f'<script defer src="{explorer.FOLDER}/explorer.js"></script>'
    )
    return folder


def test_the_weights_are_loaded_when_the_explorer_is_scrolled_to(site):
    with chromium() as browser, opened(browser, site / "page.html") as page:
        loaded = "[...document.scripts].map(s => s.src.split('/').at(-1))"
        page.wait_for_function("window.adjoint")
        assert page.evaluate(loaded) == ["explorer.js"]
        page.locator("[data-adjoint-explorer]").scroll_into_view_if_needed()
        said = settled(page)
        assert "conv2, RM2, y 1, x 2, map 3" in said and "equal up to rounding" in said
        assert {"vgg7-cifar10.js", "cifar10.js"} == {*page.evaluate(loaded)} - {"explorer.js"}
        link = page.locator("[data-part=address]")
        state = "net=vgg7&data=cifar10&layer=conv2&mode=RM2&unit=1,2,3"
        assert link.get_attribute("href") == f"x.html#{state}" and "#" not in page.url
        host = page.locator("[data-adjoint-explorer]")
        assert "dark" in host.get_attribute("class").split()
        page.evaluate("document.documentElement.dataset.theme = 'light'")
        page.wait_for_function("!document.querySelector('[data-adjoint-explorer].dark')")


def test_what_a_page_with_vgg7_loads_is_below_1_6_megabytes(site):
    folder = site / explorer.FOLDER
    sizes = {path.stem: path.stat().st_size for path in folder.iterdir()}
    assert sizes["explorer"] + sizes["cifar10"] + sizes["vgg7-cifar10"] < 1.6e6
    for dataset in explorer.DATASETS:
        script = (folder / f"vgg7-{dataset}.js").read_text()
        held = script.split('"')[3]
        classes = len(al.data.CLASS_NAMES[dataset])
        model = al.models.build("vgg7", classes=classes, weights=dataset)
        assert held == base64_of(al.equivalent(model), "float32")
    images = al.data.sample("cifar10")[0][: explorer.IMAGES]
    bytes_ = base64.b64decode((folder / "cifar10.js").read_text().split('"')[3])
    found = np.frombuffer(bytes_, np.uint8).reshape(images.shape)
    np.testing.assert_array_equal((found / 255).astype("float32"), images)
