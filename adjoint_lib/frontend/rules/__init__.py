"""How each Keras layer is written in primitives: one short function for each kind of layer."""
