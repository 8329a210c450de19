"""Every registered figure draws, and the command that redraws one does so."""

import ast
import importlib
import inspect
import pkgutil
import subprocess
import sys

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pytest
from matplotlib.figure import Figure

import adjoint_lib as al
from adjoint_book import figures
from adjoint_book._extras import EXTRAS
from adjoint_book.figures._registry import has_photo
from adjoint_book.figures._style import CYCLE, SMALL
from adjoint_lib.cli.main import main
from repository import project

MODULES = [module.name for module in pkgutil.iter_modules(figures.__path__)]


@pytest.mark.parametrize("name", figures.names())
def test_every_figure_draws_in_the_style_and_is_not_left_open(name):
    open_before = plt.get_fignums()
    drawn = figures.get(name)()
    assert isinstance(drawn, Figure)
    assert plt.get_fignums() == open_before, "a figure left open is shown twice in a notebook"
    through = (0, 0, 0, 0)  # the page, where a photo forbids to invert the figure in the dark
    assert drawn.get_facecolor() == (through if has_photo(drawn) else (1, 1, 1, 1))
    assert drawn._suptitle is None, "a figure's title is its caption"
    assert drawn.axes
    drawn.canvas.draw()
    written = [t for t in drawn.findobj(matplotlib.text.Text) if t.get_text() and t.get_visible()]
    small = {t.get_text() for t in written if t.get_fontsize() < SMALL - 1}
    assert not small, f"too small for a phone: {small}"


@pytest.mark.parametrize("name", figures.names())
def test_every_figure_can_be_drawn_by_its_name_alone_and_says_what_it_shows(name):
    draw = getattr(figures, name.replace("-", "_"))
    assert draw is figures.get(name)
    needed = [
        parameter.name
        for parameter in inspect.signature(draw).parameters.values()
        if parameter.default is parameter.empty
    ]
    assert not needed
    assert 10 < len(figures.about(name)) < 100


def test_no_module_hides_a_figure():
    assert not set(MODULES) & {name.replace("-", "_") for name in figures.names()}


@pytest.mark.parametrize("module", MODULES)
def test_every_function_that_gives_a_figure_is_registered(module):
    where = f"{figures.__name__}.{module}"
    tree = ast.parse(inspect.getsource(importlib.import_module(where)))
    drawing = {
        function.name
        for function in tree.body
        if isinstance(function, ast.FunctionDef)
        and function.returns is not None
        and ast.unparse(function.returns).strip("'\"") == "Figure"
        and not function.name.startswith("_")
    }
    registered = {figures.get(name).__name__ for name in figures.names()}
    forgotten = drawing - registered
    assert not forgotten, f"{where}: put the decorator `figure` on {forgotten}, or an underscore"


def luminance(colour: str) -> float:
    """Relative luminance, as the Web Content Accessibility Guidelines define it."""
    channels = matplotlib.colors.to_rgb(colour)
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(share * c for share, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_the_first_colours_differ_in_lightness_too():
    first, second = (luminance(colour) for colour in CYCLE[:2])
    assert max(first, second) / min(first, second) > 2


# ---- registering


def test_a_figure_drawn_twice_gives_the_same_file(tmp_path):
    one, two = (figures.save("overview", tmp_path / f"{n}.svg") for n in "ab")
    assert one.read_bytes() == two.read_bytes()


def test_a_figure_under_a_wrong_name_is_refused():
    with pytest.raises(al.InputError, match="expected a function called 'two_words'"):

        @figures.figure("two-words")
        def another():
            pass


def test_a_name_is_given_once():
    def overview():
        pass

    with pytest.raises(al.InputError, match="ch00_preface has it already"):
        figures.figure("overview")(overview)


def test_a_style_set_for_one_figure_does_not_leak():
    before = dict(plt.rcParams)
    figures.overview()
    assert dict(plt.rcParams) == before


# ---- the command


def test_the_command_lists_and_draws(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["figure"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()[2:]]
    assert listed == figures.names() and "overview" in listed
    assert main(["figure", "overview"]) == 0
    assert (tmp_path / "overview.svg").read_text("utf-8").lstrip().startswith("<?xml")
    assert main(["figure", "chapter_map", "--output", "map.png"]) == 0
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["overvew"], "Did you mean 'overview'?"),
        (["overview", "--output", "a.bmp"], "ends in .svg, .png, .pdf"),
        (["overview", "--output", "nowhere/a.svg"], "expected an existing folder"),
        (["--output", "a.svg"], "expected the name of a figure"),
    ],
)
def test_the_command_says_what_it_expected(tmp_path, monkeypatch, capsys, arguments, said):
    monkeypatch.chdir(tmp_path)
    assert main(["figure", *arguments]) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_without_matplotlib_the_remedy_is_named(tmp_path):
    code = (
        "import sys; sys.modules['matplotlib'] = None; from adjoint_lib.cli.main import main; "
        "assert main(['figure']) == 2; import adjoint_book as book; book.figures"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    said, _, raised = done.stderr.partition("Traceback")
    for text in (said, raised.splitlines()[-1]):
        assert "matplotlib" in text and "pip install 'adjoint-lib[plots]'" in text
    assert "MissingPackage" in raised


@pytest.mark.parametrize(("package", "extra"), EXTRAS.items())
def test_the_remedy_installs_what_is_missing(package, extra):
    installed = project()["optional-dependencies"][extra]
    assert any(line.startswith(package.replace("_", "-")) for line in installed)


def test_listing_the_figures_does_not_wait_for_tensorflow(tmp_path):
    # Python writes each import to stderr.
    command = [sys.executable, "-X", "importtime", "-m", "adjoint_lib", "figure"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "overview" in done.stdout
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "adjoint_book.figures._registry" in imported and "tensorflow" not in imported
