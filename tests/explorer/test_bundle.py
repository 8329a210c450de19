"""The engine's modules as one script, and the worker and its page as they talk to each other."""

import json
import textwrap

import numpy as np
import pytest
from javascript import javascript

import adjoint_lib as al
from adjoint_lib.explorer import bundle
from reference import image_of, small_net


@pytest.fixture(scope="module")
def net():
    return small_net()[1]


def modules(folder, **sources: str):
    for name, source in sources.items():
        (folder / f"{name}.js").write_text(textwrap.dedent(source))
    return sorted(folder.glob("*.js"))


def test_the_engine_gives_what_its_modules_export():
    names = {
        found["name"]
        for path in bundle.ENGINE.glob("*.js")
        for found in bundle.EXPORT.finditer(path.read_text("utf-8"))
    }
    with javascript() as js:
        assert set(js("Object.keys(adjoint)")) == names
        assert {"Engine", "EquivalentNet", "serve", "unpacked", "MODES"} <= names
        globals_of = "Object.keys(globalThis).filter((key) => key.includes('adjoint'))"
        assert js(globals_of) == ["adjoint_engine"]  # `adjoint` is a const


def test_a_bundle_runs_modules_in_the_order_of_their_imports(tmp_path):
    paths = modules(
        tmp_path,
        a="""
            import {
              base, twice,
            } from "./z.js";
            export const four = twice(base);
            """,
        z="""
            export const base = 2;
            export function twice(x) { return 2 * x; }
            """,
    )
    with javascript() as js:
        js.run(bundle.bundled(paths, "made"))
        assert js("made()") == {"base": 2, "four": 4}  # functions are no JSON


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ({"a": "const x = 1;", "b": "const x = 2;"}, "b.js: 'x' is a name in a.js too"),
        ({"a": 'import {y} from "./b.js";\n', "b": 'import {x} from "./a.js";\n'}, "in a circle"),
        ({"a": 'import {y} from "./b.js";\n'}, "a.js: imports 'b.js', which is not among"),
        ({"a": 'import y from "./b.js";\n'}, "a.js: expected imports by name"),
        ({"a": "export default 3;\n"}, "a.js: expected .* exported declarations"),
        ({"a": "const x = 1;\nexport { x };\n"}, "a.js: expected .* exported declarations"),
    ],
)
def test_modules_that_one_script_cannot_hold_are_refused(tmp_path, sources, message):
    with pytest.raises(al.InputError, match=message):
        bundle.bundled(modules(tmp_path, **sources), "made")


# ------------------------------------------------------------------ worker and page

# A page and its worker without a browser: two ends of a channel, and messages that come later.
PAGE = """
function end() { return { close() {}, onmessage: null }; }
var MessageChannel = function () {
  this.port1 = end();
  this.port2 = end();
  for (const [from, to] of [[this.port1, this.port2], [this.port2, this.port1]]) {
    from.postMessage = (data) => setTimeout(() => to.onmessage?.({ data }), 1);
  }
};
var engine = new adjoint.Engine(adjoint_engine); // without a Worker, the code runs in the page
var shares = [];
var on_progress = (share) => shares.push(share);
function signal() {
  const listeners = [], made = { aborted: false, reason: new Error("aborted") };
  made.addEventListener = (_, listener) => listeners.push(listener);
  made.abort = () => { made.aborted = true; listeners.forEach((listener) => listener()); };
  return made;
}
"""


@pytest.fixture(scope="module")
def page(net):
    with javascript() as js:
        js.run(PAGE)
        js.run(f"var image = {image_of(net).reshape(-1).tolist()}")
        answer(js, f'engine.load("small", "{bundle.base64_of(net)}")')
        yield js


def answer(js, promise: str):
    """What a promise gives, or the error that it is rejected with."""
    written = js.v8.eval(
        f"({promise}).then((r) => JSON.stringify(r, plain), (e) => JSON.stringify(String(e)))"
    )
    return json.loads(written.get(timeout=60))


def test_a_network_is_described_when_it_is_loaded(page, net):
    described = answer(page, f'engine.load("again", "{bundle.base64_of(net, "float32")}")')
    assert described["digest"] == net.digest and described["d_in"] == net.d_in
    assert [layer["name"] for layer in described["layers"]] == [x.name for x in net.layers]
    kinds = ["bias" if n.is_bias else type(n.primitive).__name__ for n in net.graph.nodes]
    assert [node["kind"] for node in described["nodes"]] == ["image", *kinds[1:]]


def test_values_are_those_of_python(page, net):
    asked = "{network: 'small', image, dtype: 'float64', nodes: [0, 1]}"
    found = answer(page, f"engine.value({asked})")
    x = image_of(net)
    for name, c in net.value(x).items():
        np.testing.assert_allclose(found["values"][name], np.reshape(c, -1), atol=1e-12)
    np.testing.assert_allclose(found["outputs"], np.reshape(net(x), (1, -1)), atol=1e-12)
    assert found["nodes"]["0"] == x.reshape(-1).tolist()


def test_a_unit_has_its_contributions_by_name(page, net):
    asked = "{network: 'small', image, layer: 'second', index: [1, 2, 3], dtype: 'float64'}"
    found = answer(page, f"engine.unit({asked})")
    unit = net.hypersurface(image_of(net), "second")[1, 2, 3]
    assert found["value"] == pytest.approx(float(unit.value), abs=1e-12)
    np.testing.assert_allclose(found["image"], unit.image.reshape(-1), atol=1e-12)
    assert list(found["contributions"]) == unit.sources
    np.testing.assert_allclose(
        list(found["contributions"].values()), unit.contributions, atol=1e-12
    )


def test_every_unit_of_a_layer_is_within_the_bound(page, net):
    page.run("shares.length = 0")
    asked = "{network: 'small', image, layer: 'second', dtype: 'float64'}"
    found = answer(page, f"engine.check({asked}, {{on_progress}})")
    assert len(found["errors"]) == 4 * 4 * 5
    assert 0 < max(found["errors"]) == found["largest"] <= found["bound"]
    shares = page("shares")
    assert shares == sorted(shares) and all(0 <= share <= 1 for share in shares)


def test_a_request_is_cancelled_and_the_next_one_answered(page):
    """By a clock that goes on at each look, so that the worker stops after each node."""
    asked = "{network: 'small', image, layer: 'second', mode: 'RM4', dtype: 'float32'}"
    page.run("var looks = 0; Date.now = () => 1000 * ++looks; var stop = signal()")
    page.run("var abort_at_once = {signal: stop, on_progress: () => stop.abort()}")
    assert answer(page, f"engine.check({asked}, abort_at_once)") == "Error: aborted"
    assert answer(page, f"engine.check({asked}, {{signal: stop}})") == "Error: aborted"
    found = answer(page, "engine.unit({network: 'small', image, layer: 'out', index: [0]})")
    assert found["roundoff"] == 2.0**-24
    assert page("looks") < 200  # a check of 320 units has thousands


def test_the_last_two_images_stay_frozen(page):
    """A unit of an image that was asked for shortly before is pulled, without a forward pass."""
    page.run(
        "var evaluated = 0, evaluate = adjoint.EquivalentNet.prototype.evaluate;"
        "adjoint.EquivalentNet.prototype.evaluate = function* (...given) {"
        "  evaluated++; return yield* evaluate.apply(this, given); }"
    )
    images = [f"image.map((x) => {n} * x)" for n in (2, 3, 2, 3, 4, 2)]
    for scaled in images:
        answer(
            page, f"engine.unit({{network: 'small', image: {scaled}, layer: 'out', index: [0]}})"
        )
    assert page("evaluated") == 4  # 2, 3, 4, and 2 again


def test_what_cannot_be_answered_is_rejected_with_the_reason(page):
    found = answer(page, "engine.unit({network: 'large', image, layer: 'out', index: [0]})")
    assert found.startswith("InputError: expected a network that was loaded (small, again)")
    found = answer(page, "engine.unit({network: 'small', image, layer: 'none', index: [0]})")
    assert found.startswith("InputError: unknown layer")


def test_where_a_worker_is_refused_the_page_computes(page, net):
    """A policy of the page may forbid workers from blobs, of which the page hears later."""
    page.run(
        "var Blob = function () {}; var URL = { createObjectURL: () => 'blob:' };"
        "var workers = []; var Worker = function () { workers.push(this); };"
        "Worker.prototype.postMessage = function (data) { (this.sent ??= []).push(data); };"
        "var other = new adjoint.Engine(adjoint_engine)"
    )
    page.run(f'var loaded = other.load("small", "{bundle.base64_of(net)}")')
    assert page("workers.length === 1 && workers[0].sent.length === 1")
    page.run("workers[0].onerror({ message: 'forbidden' })")
    assert answer(page, "loaded")["digest"] == net.digest
    page.run("var waiting = other.value({network: 'small', image}); other.port.onerror({})")
    assert answer(page, "waiting").startswith("Error: the worker broke")


def test_two_sources_of_one_name_are_told_apart():
    with javascript() as js:
        named = js("adjoint.by_name(['image', 'b', 'b', 'b'], [1, 2, 3, 4])")
    assert named == {"image": 1, "b": 2, "b#2": 3, "b#3": 4}
