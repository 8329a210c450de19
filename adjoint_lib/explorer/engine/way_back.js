// @ts-check
/**
 * The pull as it goes: what a unit is made of at each depth that all of the image passes.
 *
 * Pulled back to such a node, the unit's kernel is a cotangent g there. With F the node's value,
 *
 *     c = <F | g> + <x_b | H_b as far as it is known by then>.
 *
 * At what the unit's layer reads, the second part is zero; at x, the two are <x | H_I> and <x_b | H_b>.
 */

import { inner, product } from "./arrays.js";
import { IMAGE } from "./graph.js";

/** @typedef {import("./arrays.js").Tensor} Tensor */
/** @typedef {import("./frozen.js").Frozen} Frozen */

/**
 * What a unit is made of at one node.
 * @typedef {object} Stop
 * @property {number} number  the node, x or one that a layer reads
 * @property {readonly number[]} shape  of the places that `gives` has: those of the node, without channels
 * @property {number[]} gives  F g of each place, added over channels
 * @property {number} here  <F | g>, the sum of `gives`
 * @property {number} biases  what the biases on the way from here to the unit give
 */

/**
 * A `visit` for `Frozen.pulling` that appends to the stops: from the unit to x.
 * @param {Frozen} frozen
 * @param {Stop[]} stops
 */
export function noting(frozen, stops) {
  const { net, values } = frozen;
  const wanted = new Set([IMAGE, ...net.layers.map((layer) => layer.reads)]);
  return (/** @type {number} */ number, /** @type {Map<number, Tensor>} */ cotangents) => {
    if (!wanted.has(number)) return;
    const others = [...cotangents].filter(([other]) => other !== number);
    if (!others.every(([other]) => net.graph.is_bias(other))) return; // x goes around it too
    const F = values[number], g = /** @type {Tensor} */ (cotangents.get(number));
    const { shape } = net.nodes[number], places = shape.length > 1 ? shape.slice(0, -1) : shape;
    const channels = F.length / product(places);
    const gives = Array.from({ length: product(places) }, (_, place) =>
      inner(F, g, place * channels, (place + 1) * channels));
    const biases = others.reduce((sum, [other, of]) => sum + inner(values[other], of), 0);
    stops.push({ number, shape: places, gives, here: inner(F, g), biases });
  };
}
