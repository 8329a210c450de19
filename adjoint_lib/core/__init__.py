"""The mathematics: a piecewise-linear network over [x; x_b], frozen, pushed and pulled."""
