"""One way to register: what is entered is found, a name is taken once, a wrong one is answered."""

import pytest

from adjoint_lib._registry import Registry, did_you_mean
from adjoint_lib.errors import InputError


def test_what_is_registered_is_found_under_each_key():
    found = Registry("thing")

    @found.register("a", "b")
    def thing():
        return 3

    assert thing() == 3
    assert found["a"] is found["b"] is thing
    assert list(found) == ["a", "b"] and len(found) == 2
    with pytest.raises(KeyError):
        found["c"]


def test_a_name_is_taken_once_even_within_a_module():
    found = Registry("thing")

    def define():
        def thing():
            pass

        return thing

    found.register("a")(define())
    found.register("a")(define())  # the same lines again, as when a module is reloaded

    def thing():
        pass

    with pytest.raises(InputError, match="thing 'a': expected a new name"):
        found.register("a")(thing)


def test_the_modules_of_a_package_register_at_the_first_look(tmp_path, monkeypatch):
    package = tmp_path / "things_that_register"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from adjoint_lib._registry import Registry\nTHINGS = Registry('thing', package=__name__)\n"
    )
    (package / "one.py").write_text(
        "from things_that_register import THINGS\n@THINGS.register('one')\ndef one(): pass\n"
    )
    (package / "two.py").write_text("raise OSError('not now')\n")
    monkeypatch.syspath_prepend(tmp_path)
    from things_that_register import THINGS

    with pytest.raises(OSError, match="not now"):
        list(THINGS)
    (package / "two.py").write_text("")
    assert list(THINGS) == ["one"]  # the failure is not forgotten: all modules are looked at again


@pytest.mark.parametrize(
    ("name", "hint"),
    [("conv", " Did you mean 'conv1'?"), ("Res_Net20", " Did you mean 'resnet20'?"), ("xyz", "")],
)
def test_did_you_mean(name, hint):
    assert did_you_mean(name, ["conv1", "resnet20"]) == hint
