"""What the library offers: a change of these lists is a change for every user."""

import subprocess
import sys

import keras
import pytest

import adjoint_lib as al
from adjoint_lib.frontend.layers import Bias, PadChannels
from adjoint_lib.verification import verify

PUBLIC = """
    AdjointError Contributions DataError DivergedError EquivalentNet Hypersurface InputError MODES
    Report TooLarge Units UnsupportedLayer data equivalent explain load_model models primitives
    results supports training verify
"""
DATA = "CLASS_NAMES Status fetch load sample status"
TRAINING = """
    AUGMENTATIONS Accuracy Disagreement Recipe Scorer accuracy disagreements draw equivalent_scores
    kept orthogonal recipe split train
"""


def test_the_public_names_are_these():
    assert sorted(al.__all__) == sorted(PUBLIC.split())
    assert sorted(al.data.__all__) == sorted(DATA.split())
    assert sorted(al.training.__all__) == sorted(TRAINING.split())


def test_every_public_name_is_there_and_no_other():
    for module in (al, al.data, al.training):
        assert all(getattr(module, name) is not None for name in module.__all__)
        assert set(module.__all__) <= set(dir(module))
    assert al.verify is verify.verify
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = al.nothing
    with pytest.raises(ImportError):
        exec("from adjoint_lib import nothing")


def test_importing_the_package_imports_neither_tensorflow_nor_keras():
    code = (
        "import sys, adjoint_lib; print(sorted({'tensorflow', 'keras', 'numpy'} & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_saved_model_with_the_librarys_own_layers_opens(tmp_path):
    path = tmp_path / "own.keras"
    keras.Sequential([keras.Input((4, 4, 3)), Bias(), PadChannels(5)]).save(path)
    code = f"import adjoint_lib as al; print(type(al.load_model({str(path)!r}).layers[0]).__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "Bias", done.stderr
