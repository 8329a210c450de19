"""Ways from some maps to others, by name: what a window of the one becomes in the other."""

import keras

from adjoint_lib.frontend import layers

L = keras.layers


def residual(x):
    h = L.ReLU()(L.Conv2D(3, 3, padding="same")(x))
    return L.Add()([L.Conv2D(3, 3, padding="same")(h), L.Conv2D(3, 1)(x)])


def narrowing(x):
    h = L.LeakyReLU()(L.Conv2D(3, 3, padding="same")(x))
    branch = L.Conv2D(5, 3, strides=2, padding="same")(h)
    shortcut = layers.PadChannels(5)(L.AveragePooling2D(1, 2)(h))
    return L.Add()([branch, shortcut])


def dense_net(x):
    h = L.BatchNormalization()(L.ReLU()(L.Conv2D(2, 3, padding="same")(x)))
    return L.Concatenate()([h, x, L.Conv2D(2, 5, padding="same")(h)])


WIRINGS = {
    "same": lambda x: L.Conv2D(3, 3, padding="same")(x),
    "valid": lambda x: L.Conv2D(3, (2, 3))(x),
    "even": lambda x: L.Conv2D(3, (4, 2), padding="same")(x),
    "stride 2": lambda x: L.Conv2D(3, 3, strides=2, padding="same")(x),
    "stride 3, valid": lambda x: L.Conv2D(3, 2, strides=3)(x),
    "stride beyond the kernel": lambda x: L.Conv2D(3, 1, strides=2)(x),
    "dilated": lambda x: L.Conv2D(3, 3, dilation_rate=2, padding="same")(x),
    "groups": lambda x: L.Conv2D(4, 3, groups=2)(x),
    "average": lambda x: L.AveragePooling2D(3, 2, padding="same")(x),
    "average, valid": lambda x: L.AveragePooling2D((2, 3), 2)(x),
    "max": lambda x: L.MaxPooling2D(3, 2, padding="same")(x),
    "residual": residual,
    "narrowing": narrowing,
    "concatenated": dense_net,
    "pad": lambda x: L.ZeroPadding2D(((1, 0), (2, 3)))(x),
    "crop": lambda x: L.Cropping2D(1)(x),
    "cropped convolution": lambda x: L.Cropping2D(((2, 1), (0, 2)))(L.Conv2D(3, 3)(x)),
    "dense on maps": lambda x: L.Dense(3)(x),
    "ReLU6": lambda x: L.ReLU(max_value=0.5)(x),
    "PReLU": lambda x: L.PReLU()(x),
    "depthwise": lambda x: L.DepthwiseConv2D(3, padding="same")(x),
    "depthwise, stride 2": lambda x: L.DepthwiseConv2D(3, strides=2, padding="same")(x),
    "depthwise, two each": lambda x: L.DepthwiseConv2D(3, depth_multiplier=2)(x),
    "separable, dilated": lambda x: L.SeparableConv2D(3, 3, dilation_rate=2)(x),
    "transposed": lambda x: L.Conv2DTranspose(3, 3, strides=2, padding="same")(x),
    "upsampling": lambda x: L.UpSampling2D(2)(x),
    "operators": lambda x: 2.0 * x - L.ReLU()(x),
    "permuted": lambda x: L.Permute((2, 1, 3))(x),
    "maximum": lambda x: L.Maximum()([x, L.Conv2D(2, 1)(x)]),
}
