"""The files around the library agree with each other and with what they promise."""

import importlib
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, metadata
from inspect import ismodule
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import adjoint_lib as al
from repository import ROOT, project, text, tracked_texts, version

# ---- the README


def readme_example() -> str:
    blocks = re.findall(r"^```python\n(.*?)^```$", text("README.md"), re.M | re.S)
    assert len(blocks) == 1, f"expected one Python example in README.md, found {len(blocks)}"
    return blocks[0]


def test_the_readme_example_compiles():
    compile(readme_example(), "README.md", "exec")


def test_the_readme_example_runs_and_prints_what_its_comments_say(tmp_path):
    example = readme_example()
    # Away from the clone, so that nothing but the installed library can be meant.
    run = subprocess.run(
        [sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    # A comment that begins with a shape, or two, is what its line prints.
    promised = re.findall(r"^print\(.*?# (\([\d, ]+\)(?: \([\d, ]+\))*)", example, re.M)
    assert len(promised) == 2
    assert run.stdout.splitlines()[: len(promised)] == promised


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_links_between_files_lead_somewhere(name):
    prose = re.sub(r"`[^`\n]+`", "", text(name))  # code shows what a link looks like
    linked = re.findall(r"\]\(([^)#]+)\)", prose)
    local = [target for target in linked if not urlsplit(target).scheme]
    assert local
    for target in local:
        assert (ROOT / target).is_file(), f"{name} links to {target}, which is not there"


def test_the_readme_lists_every_folder_of_the_library_and_files_that_exist():
    library = ROOT / "adjoint_lib"
    listed = set(re.findall(r"^\| `(\w+)` \|", text("README.md"), re.M))
    assert listed == {path.parent.name for path in library.glob("*/__init__.py")}
    files = re.findall(r"`(\w+/\w+\.py)`", text("README.md"))
    assert len(files) >= 8
    for file in files:
        assert (library / file).is_file() or (ROOT / file).is_file(), file


@pytest.mark.parametrize(
    ("name", "least"),
    [("README.md", {"book", "test", "lab", "bench"}), ("CONTRIBUTING.md", {"check", "test"})],
)
def test_every_make_target_that_is_named_exists(name, least):
    targets = set(re.findall(r"^([a-z-]+):", text("Makefile"), re.M))
    named = set(re.findall(r"^    make ([a-z-]+)|`make ([a-z-]+)", text(name), re.M))
    named = {first or second for first, second in named}
    assert least <= named <= targets


# ---- what contributors are told


def test_the_files_that_contributors_are_sent_to_exist():
    files = re.findall(r"`((?:adjoint_lib|book|tests)/[\w/]+\.py)`", text("CONTRIBUTING.md"))
    files = [file for file in files if not re.search("NN|NAME", file)]
    assert len(files) >= 8
    for file in files:
        assert (ROOT / file).is_file(), f"CONTRIBUTING.md sends to {file}, which is not there"


def test_every_file_of_a_command_registers_it():
    shared = {"__init__", "console", "images", "main", "options"}
    files = {path.stem for path in (ROOT / "adjoint_lib" / "cli").glob("*.py")} - shared
    assert len(files) >= 5
    for name in files:
        content = text(f"adjoint_lib/cli/{name}.py")
        assert re.search(rf'^@command\(\s*"{name}",', content, re.M), name
        assert re.search(rf"^def {name}\(", content, re.M), name


# ---- one fact, one value


def test_the_version_is_stated_once_and_cited():
    assert "version" in project()["dynamic"] and "version" not in project()
    assert yaml.safe_load(text("CITATION.cff"))["version"] == version()


def test_the_repository_has_one_address():
    address = yaml.safe_load(text("_config.yml"))["repository"]["url"]
    assert yaml.safe_load(text("CITATION.cff"))["repository-code"] == address
    assert project()["urls"]["Repository"] == address
    assert re.findall(r"as `_config.yml` has it, is (\S+)\.$", text("README.md"), re.M) == [address]
    # It is a placeholder until `make set-repo` is run: nobody is told to install from it.
    assert "git+" not in text("README.md") and "make set-repo" in text("README.md")


def test_the_readme_says_which_pythons_and_names_every_extra():
    assert f"Python {PYTHONS[0]} to {PYTHONS[-1]}" in text("README.md")
    named = set(re.findall(r"^- `(\w+)`: ", text("README.md"), re.M))
    assert named == project()["optional-dependencies"].keys()


def test_the_citation_has_what_its_format_requires_and_names_the_paper():
    citation = yaml.safe_load(text("CITATION.cff"))
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert citation["type"] == "software" and citation["license"] == project()["license"]
    (paper,) = citation["references"]
    assert {"type", "title", "authors"} <= paper.keys()
    assert paper["title"] in re.sub(r"\s+>?\s*", " ", text("README.md"))
    for author in paper["authors"]:
        assert f"{author['given-names']} {author['family-names']}" in text("README.md")


def test_the_licences_are_the_ones_announced():
    assert text("LICENSE").startswith("MIT License")
    assert "CC-BY-4.0" in text("LICENSE-TEXT")


# ---- what is installed

PYTHONS = ("3.10", "3.11", "3.12", "3.13")


def requirements(name: str) -> dict[str, Requirement]:
    """The lines of a file of requirements, by the name of the package."""
    lines = [line.split(" #")[0].strip() for line in text(name).splitlines()]
    found = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(each.name): each for each in found}


def wanted(*extras: str) -> dict[str, Requirement]:
    """What pyproject.toml asks for, with these extras and without the library itself."""
    optional = project()["optional-dependencies"]
    lines = [*project()["dependencies"], *(line for extra in extras for line in optional[extra])]
    found = {canonicalize_name(each.name): each for each in map(Requirement, lines)}
    return {name: each for name, each in found.items() if name != "adjoint-lib"}


def test_the_constraints_name_one_version_of_each_direct_dependency():
    pins = requirements("constraints.txt")
    asked = wanted("plots", "book", "course", "cluster", "test")
    assert not {name for name in asked.keys() - pins.keys() if not asked[name].marker}
    for name, pin in pins.items():
        assert pin.url is None and re.fullmatch(r"==[\w.]+", str(pin.specifier)), pin
        if name in asked:
            assert asked[name].specifier.contains(str(pin.specifier)[2:]), pin


def test_the_constraints_ask_no_python_for_a_version_it_cannot_have():
    for name, pin in requirements("constraints.txt").items():
        try:
            found = metadata(name)
        except PackageNotFoundError:
            continue
        if found["Version"] != str(pin.specifier)[2:]:  # installed with other versions
            continue
        allowed = SpecifierSet(found.get("Requires-Python", ""))
        for python in PYTHONS:
            if pin.marker is None or pin.marker.evaluate({"python_version": python}):
                assert f"{python}.0" in allowed, f"{pin}: not for Python {python}"


def test_the_oldest_versions_tested_are_the_oldest_promised():
    oldest, asked = requirements("constraints-oldest.txt"), wanted("plots")
    assert {"tensorflow", "keras", "numpy"} <= oldest.keys() <= asked.keys()
    for name, pin in oldest.items():
        least = str(asked[name].specifier).removeprefix(">=")
        assert re.fullmatch(rf"=={re.escape(least)}\.[\d*]+", str(pin.specifier)), pin


def test_binder_installs_what_the_chapters_need_with_tensorflow_for_the_processor_alone():
    installed, pins = requirements("binder/requirements.txt"), requirements("constraints.txt")
    assert "tensorflow" not in installed and "tensorflow-cpu" in installed
    assert (wanted("plots").keys() | {"ipywidgets"}) - {"tensorflow"} <= installed.keys()
    for name, line in installed.items():
        assert line.specifier == pins[name.removesuffix("-cpu")].specifier, line
    # Its own dependencies are left out, or the whole of TensorFlow would come with it.
    assert "pip install --no-deps -e ." in text("binder/postBuild")
    assert os.access(ROOT / "binder" / "postBuild", os.X_OK)
    assert text("binder/runtime.txt").strip().removeprefix("python-") in PYTHONS


# ---- the pieces around the code


def test_every_page_in_the_table_of_contents_exists():
    def pages(node):
        if isinstance(node, dict):
            yield from (node[key] for key in ("root", "file") if key in node)
        for child in node.values() if isinstance(node, dict) else node:
            if isinstance(child, dict | list):
                yield from pages(child)

    found = list(pages(yaml.safe_load(text("_toc.yml"))))
    assert found
    for page in found:
        assert any((ROOT / f"{page}{end}").is_file() for end in (".md", ".ipynb", "")), page


def workflow(name: str) -> dict:
    content = yaml.safe_load(text(f".github/workflows/{name}.yml"))
    assert content["permissions"] == {"contents": "read"}
    return content


def commands(job: dict) -> list[str]:
    return [step["run"] for step in job["steps"] if "run" in step]


def writers(jobs: dict) -> set[str]:
    """The jobs that may write anything."""
    return {name for name, job in jobs.items() if "write" in job.get("permissions", {}).values()}


def test_the_pages_of_the_library_list_modules_that_exist_public_ones_first():
    pages = sorted((ROOT / "book").glob("api-*.md"))
    assert all(f"({path.name})" in text("book/api.md") for path in pages)
    public, listed = ["adjoint_lib.errors"], []
    assert "automodule:: adjoint_lib.errors" in text("book/api.md")
    for path in pages:
        parts = re.split(r"^## (\w+)$", path.read_text("utf-8"), flags=re.M)[1:]
        assert parts[::2] in (["Public", "Internal"], ["Public"], ["Internal"])
        for kind, part in zip(parts[::2], parts[1::2], strict=True):
            found = re.findall(r"automodule:: (\S+)", part)
            listed += found
            public += found if kind == "Public" else []
    assert len(listed) >= 20 and len(set(listed)) == len(listed)
    for name in listed:
        importlib.import_module(name)
    homes = {getattr(al, name).__module__ for name in al.__all__ if callable(getattr(al, name))}
    spaces = {getattr(al, name).__name__ for name in al.__all__ if ismodule(getattr(al, name))}
    assert homes | spaces <= {*public}


def test_the_continuous_integration_runs_the_same_commands():
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert "make test" in text(".ci/run")
    jobs = workflow("book")["jobs"]
    assert commands(jobs["test"]) == ["make test"] and commands(jobs["build"]) == ["make book"]
    assert writers(jobs) == {"deploy"}


def test_the_oldest_and_the_newest_python_are_tested():
    jobs = workflow("book")["jobs"]
    python = {
        name: step["with"]["python-version"]
        for name, job in jobs.items()
        for step in job["steps"]
        if "setup-python" in step.get("uses", "")
    }
    assert (python["oldest"], python["newest"]) == (PYTHONS[0], PYTHONS[-1])
    assert set(jobs["test"]["strategy"]["matrix"]["python"]) <= set(PYTHONS)
    assert commands(jobs["oldest"]) == ["make check CONSTRAINTS=constraints-oldest.txt"]
    assert commands(jobs["newest"]) == ["make test CONSTRAINTS="]
    classified = {line.split()[-1] for line in project()["classifiers"] if ":: 3." in line}
    assert classified == set(PYTHONS)
    assert SpecifierSet(project()["requires-python"]) == SpecifierSet(">=3.10,<3.14")


@pytest.mark.skipif(shutil.which("grep") is None, reason="needs grep")
def test_a_release_needs_a_tag_that_is_the_version_and_an_entry_in_the_changelog():
    content = workflow("release")
    assert content[True] == {"push": {"tags": ["v*"]}}  # YAML reads `on` as true
    assert writers(content["jobs"]) == {"publish"}
    publish = content["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"} and publish["environment"] == "pypi"
    checks = [command for command in commands(content["jobs"]["build"]) if "TAG" in command]
    assert len(checks) == 2
    for check in checks:
        for tag, passes in ((f"v{version()}", True), ("v9.9.9", False)):
            run = subprocess.run(
                ["sh", "-c", check], cwd=ROOT, env={**os.environ, "TAG": tag}, capture_output=True
            )
            assert (run.returncode == 0) == passes, f"{check} with {tag}"


def test_the_forms_for_issues_have_what_their_format_requires():
    forms = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
    forms = [form for form in forms if form.stem != "config"]
    assert len(forms) == 3
    for form in forms:
        content = yaml.safe_load(form.read_text(encoding="utf-8"))
        assert {"name", "description", "body"} <= content.keys()
        names = [field["id"] for field in content["body"]]
        assert len(set(names)) == len(names)
        assert all(field["attributes"]["label"] for field in content["body"])
    assert len(text(".github/PULL_REQUEST_TEMPLATE.md").splitlines()) == 5


def test_the_example_in_the_form_for_bugs_runs(tmp_path):
    form = yaml.safe_load(text(".github/ISSUE_TEMPLATE/bug.yml"))
    example = form["body"][0]["attributes"]["value"]
    run = subprocess.run(
        [sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert "conv" in run.stdout


def fake_python(folder: Path, release: str) -> Path:
    """A stand-in for an interpreter of another version, for what the Makefile asks of it."""
    major, minor = release.split(".")
    script = folder / f"python{release}"
    script.write_text(
        "#!/bin/sh\n"
        f'[ "$1" = -c ] || {{ echo \'went on to run: \'"$*"; exit 1; }}\n'
        f'exec {sys.executable} -c "import sys; sys.version_info = ({major}, {minor}, 0); $2"\n'
    )
    script.chmod(0o755)
    return script


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
@pytest.mark.parametrize(
    ("release", "said"),
    [
        ("3.9", "Name a later one"),
        ("3.14", "no TensorFlow yet. Name an earlier one"),
        (None, "was not found"),
        ("3.10", "Making"),
        ("3.13", "Making"),
    ],
)
def test_make_says_early_which_python_it_needs(tmp_path, release, said):
    python = tmp_path / "nothing" if release is None else fake_python(tmp_path, release)
    run = subprocess.run(
        ["make", "test", f"PYTHON={python}", f"VENV={tmp_path / 'venv'}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert run.returncode != 0  # the stand-in can make no environment
    assert said in run.stdout
    assert ("Making" in run.stdout) == (release in PYTHONS)
    if release not in PYTHONS:
        assert "3.10 to 3.13" in run.stdout


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_make_alone_lists_every_target_and_touches_nothing(tmp_path):
    venv = tmp_path / "venv"
    run = subprocess.run(
        ["make", f"VENV={venv}"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for target in ("book", "check", "test", "lab", "bench", "clean"):
        assert re.search(rf"^  make {target} ", run.stdout, re.M)
    assert not venv.exists()


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_make_check_and_make_test_begin_with_the_same_lines(tmp_path):
    def lines(target, *settings):
        command = ["make", "-n", target, f"VENV={tmp_path}", f"PYTHON={sys.executable}", *settings]
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        return re.findall(rf"^{tmp_path}/bin/(.*)$", run.stdout.split(".ready-dev\n")[-1], re.M)

    check, test = lines("check"), lines("test")
    assert [
        line.split()[0] for line in check
    ] == "ruff ruff codespell mypy lint-imports python".split()
    assert check[:-1] == test[: len(check) - 1]
    oldest = lines("check", "CONSTRAINTS=constraints-oldest.txt")
    assert oldest == [line for line in check if line != "mypy"]
    assert any(re.fullmatch(r"python -m pytest -q( -n 2 .*)?", line) for line in test)


# ---- nothing of the machine it was made on


def local_traces() -> list[str]:
    """Paths and package-index hosts that belong to this machine: none may be in a tracked file."""
    paths = [str(ROOT), sys.prefix, str(Path.home())]
    paths = [path for path in paths if len(Path(path).parts) > 1]
    settings = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    ).stdout
    urls = re.findall(r"(?:https?|file)://[^\s'\"]+", settings)
    hosts = [urlsplit(url).hostname or urlsplit(url).path for url in urls]
    return sorted({*paths, *hosts})


def test_tracked_files_hold_no_trace_of_a_machine():
    patterns = [rf"(?<![\w./-]){re.escape(trace)}(?![\w.-])" for trace in local_traces()]
    patterns.append(r"/(?:home|Users)/\w+/")
    traces = re.compile("|".join(patterns))
    found = {
        f"{name}: {match[0]}"
        for name, content in tracked_texts().items()
        if Path(name) != Path(__file__).relative_to(ROOT)
        for match in traces.finditer(content)
    }
    assert not found


def test_no_pickle_is_asked_for_anywhere():
    # Written in two halves, so that this file passes its own test.
    forbidden = re.compile("allow_" + "pickle|import pick" + "le|pick" + r"le\.loads?\(")
    found = {name for name, content in tracked_texts().items() if forbidden.search(content)}
    assert not found


def test_the_library_has_few_doors():
    top = [path for path in (ROOT / "adjoint_lib").iterdir() if path.name != "__pycache__"]
    assert sum(path.is_dir() for path in top) <= 6
    assert sum(path.is_file() for path in top) <= 6
