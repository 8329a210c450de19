"""`equivalent(model)`: a piecewise-linear Keras model as a network over [x; x_b], checked."""

from __future__ import annotations

import keras

from adjoint_lib.core.equivalent_net import EquivalentNet
from adjoint_lib.core.folding import fold
from adjoint_lib.frontend.comparison import compare, trial_images
from adjoint_lib.frontend.lowering import lower
from adjoint_lib.frontend.refusals import check_model, precision_of


def equivalent(model: keras.Model) -> EquivalentNet:
    """The equivalent network of a built Keras model of piecewise-linear layers.

    Batch normalisation, multipliers and rescalings are folded into kernels where the wiring allows
    it; a final softmax, sigmoid or the like is dropped with a warning. Layers and models of one's
    own are read by tracing their call. The result is compared with the model, layer by layer, on
    images at five scales before it is returned.

    Raises:
        UnsupportedLayer: the model holds a layer that is not piecewise linear, or not known.
        InputError: the model is not built, has no fixed input size, or mixes precisions.
    """
    check_model(model)
    dtype = precision_of(model)
    net = EquivalentNet(model.name, fold(lower(model, dtype)), dtype)
    compare(model, net, trial_images(net), warn=True)
    return net
