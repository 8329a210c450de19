// @ts-check
/**
 * All rounding theory: how far a reconstructed unit may be from the unit, and why no further.
 *
 * A unit c and its reconstruction c_hat are both sums of products along paths through the frozen
 * network. Let A be the unit's rounding scale: the same sums with every term replaced by its absolute
 * value, |v| through |weights|. If a product meets at most m rounded operations, each of relative
 * error u, then
 *
 *     |c_hat - c| <= gamma A,    gamma = m u / (1 - m u).
 *
 * A has no cancellation, so it is computed in the network's own dtype.
 */

import { product } from "./arrays.js";

/** @typedef {import("./arrays.js").Tensor} Tensor */
/** @typedef {import("./frozen.js").Frozen} Frozen */
/** @typedef {import("./network.js").Network} Network */
/** @typedef {import("./network.js").Layer} Layer */

/** u: the largest relative error of rounding to this dtype. @param {string} dtype */
export function unit_roundoff(dtype) {
  return dtype === "float32" ? 2 ** -24 : 2 ** -53;
}

/**
 * A at a node. What is computed for it is kept for other nodes.
 * @param {Frozen} frozen
 * @param {number} number
 * @returns {Generator<number, Tensor>}
 */
export function* rounding_scale(frozen, number) {
  const { net, image, absolute } = frozen;
  const starts = net.along(image.map(Math.abs), net.x_b.map(Math.abs));
  yield* absolute.push(starts, [number], frozen.scales);
  return /** @type {Tensor} */ (frozen.scales.get(number));
}

/**
 * The rigorous limit of |c_hat - c| / (u A) for the units of a layer in a mode, H being pulled.
 * @param {Network} net
 * @param {Layer} layer
 * @param {{pool: boolean}} mode
 * @param {number} further  operations beside these
 */
export function bound(net, layer, mode, further = 0) {
  const n = roundings(net, layer), back = roundings_back(net, layer);
  const summed = mode.pool ? product(layer.shape) : 0;
  const m = n + Math.max(n, back) + net.d_in + summed + further;
  return m / (1 - m * unit_roundoff(net.dtype));
}

/** How many rounded operations a product meets on the longest path to a unit. @param {Network} net @param {Layer} layer */
export function roundings(net, layer) {
  /** @type {number[]} */
  const longest = [];
  for (const { inputs, primitive } of net.nodes.slice(0, layer.number + 1)) {
    longest.push(Math.max(0, ...inputs.map((i) => longest[i])) + (primitive?.roundings ?? 0));
  }
  return longest[layer.number];
}

/**
 * How many it meets when the unit is pulled back to [x; x_b]: a pull adds the cotangents of all
 * nodes that read a node, one after the other.
 * @param {Network} net
 * @param {Layer} layer
 */
export function roundings_back(net, layer) {
  const longest = new Map([[layer.number, 0]]);
  /** @type {Map<number, number>} */
  const readers = new Map();
  const adding = (/** @type {number} */ number) => Math.max(0, (readers.get(number) ?? 0) - 1);
  let most = 0;
  for (let number = layer.number; number >= 0; number--) {
    const before = longest.get(number), { inputs, primitive } = net.nodes[number];
    if (before === undefined) continue;
    const here = before + adding(number) + (primitive?.roundings_back ?? 0);
    if (primitive === null) most = Math.max(most, here);
    for (const i of inputs) {
      longest.set(i, Math.max(longest.get(i) ?? 0, here));
      readers.set(i, (readers.get(i) ?? 0) + 1);
    }
  }
  return most;
}
