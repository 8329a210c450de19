// @ts-check
/**
 * The five reconstruction modes RM0 ... RM4: the effective hypersurface H = J* w of a unit.
 *
 * The modes differ only in the cotangent they hand to the same J*. For a layer with kernel
 * w[r1, r2, j, i] (in-channel j, out-channel i) and window positions s = (y, x):
 *
 *     RM4   one position s, one in-channel j, one out-channel i        [y, x, j, i]
 *     RM3   RM4 summed over s                                          [j, i]
 *     RM2   RM4 summed over j: the unit c[s, i]                        [y, x, i]
 *     RM1   RM4 summed over s and j                                    [i]
 *     RM0   a column of a dense layer                                  [i]
 */

import { finite, inner, steps_of } from "./arrays.js";
import { bound, rounding_scale, unit_roundoff } from "./error_bounds.js";
import { InputError } from "./errors.js";
import { noting } from "./way_back.js";
import { receptive_field } from "./windows.js";

/** @typedef {import("./arrays.js").Tensor} Tensor */
/** @typedef {import("./frozen.js").Frozen} Frozen */
/** @typedef {import("./network.js").Layer} Layer */
/** @typedef {import("./primitives.js").Primitive} Primitive */
/** @typedef {import("./way_back.js").Stop} Stop */

/**
 * Which of the paper's two sums a mode takes: over in-channels (merge), positions (pool).
 * @typedef {{name: string, merge: boolean, pool: boolean}} Mode
 */

/** @type {Record<string, Mode>} */
export const MODES = {
  RM0: { name: "RM0", merge: true, pool: false },
  RM1: { name: "RM1", merge: true, pool: true },
  RM2: { name: "RM2", merge: true, pool: false },
  RM3: { name: "RM3", merge: false, pool: true },
  RM4: { name: "RM4", merge: false, pool: false },
};

/** The mode of this name, by default RM2 or RM0, if it fits the layer. @param {Layer} layer @param {string} [name] */
export function mode_of(layer, name = layer.default_mode) {
  if (!layer.modes.includes(name)) {
    throw new InputError(`mode ${name} does not fit layer '${layer.name}' (${layer.kind}, units ${layer.shape}); expected ${layer.modes.join(" or ")}.`);
  }
  return MODES[name];
}

/** The axes of a mode's units: (y, x, j, i) without those that are summed. @param {Mode} mode @param {Layer} layer */
export function unit_axes(mode, layer) {
  const positions = mode.pool ? [] : layer.shape.slice(0, -1);
  return [...positions, ...(mode.merge ? [] : [layer.channels]), layer.shape[layer.shape.length - 1]];
}

/**
 * What was computed of a unit: its hypersurface, and what [x; x_b] gives it by parts.
 * @typedef {object} Unit
 * @property {number} value  <x | H_I> + <x_b | H_b>
 * @property {number} network_value  what the network itself computes for it
 * @property {Tensor} image  H_I
 * @property {Tensor} bias  H_b
 * @property {string[]} sources  what the entries of `contributions` come from
 * @property {number[]} contributions  <x | H_I>, then <x_b | H_b> of each part of x_b; sum: `value`
 * @property {number} scale  A
 * @property {number} bound  |value - network_value| <= bound * roundoff * scale
 * @property {number} roundoff  u of the dtype
 * @property {number[][]} receptive_field  first and one past the last, along each axis of x but channels
 * @property {Stop[]} way_back  what it is made of at each depth, from what its layer reads to x
 */

/**
 * The unit at an index: H = J* w and all that follows from it.
 * @param {Frozen} frozen
 * @param {Layer} layer
 * @param {Mode} mode
 * @param {number[]} index  an entry of `unit_axes`
 * @param {number[] | null} against  another unit, which is subtracted: why this class rather than that
 * @returns {Generator<number, Unit>}
 */
export function* hypersurface(frozen, layer, mode, index, against = null) {
  const { net } = frozen;
  const A = yield* rounding_scale(frozen, layer.reads);
  let cotangent = cotangent_of(frozen, layer, mode, index);
  let network_value = network_value_of(frozen, layer, mode, index, cotangent);
  let scale = inner(A, cotangent_of(frozen.absolute, layer, mode, index));
  if (against !== null) {
    const other = cotangent_of(frozen, layer, mode, against);
    network_value -= network_value_of(frozen, layer, mode, against, other);
    scale += inner(A, cotangent_of(frozen.absolute, layer, mode, against));
    cotangent = cotangent.map((entry, i) => entry - other[i]);
  }
  /** @type {Stop[]} */
  const way_back = [];
  const { image, bias } = yield* frozen.pulling(layer.reads, cotangent, noting(frozen, way_back));
  if (!finite(image) || !finite(bias)) {
    throw new InputError(`H of '${layer.name}' overflows ${net.dtype}. Try float64.`);
  }
  const contributions = [
    inner(image, frozen.image),
    ...net.sources.map(({ start, stop }) => inner(bias, net.x_b, start, stop)),
  ];
  return {
    value: contributions.reduce((sum, part) => sum + part, 0),
    network_value,
    image,
    bias,
    sources: ["image", ...net.sources.map((s) => s.name)],
    contributions,
    scale,
    bound: bound(net, layer, mode, against === null ? 0 : 1),
    roundoff: unit_roundoff(net.dtype),
    receptive_field: receptive_field(net, layer, mode, index, against),
    way_back,
  };
}

/**
 * What the unit weighs F(v) with: its kernel, in place.
 * @param {Frozen} frozen
 * @param {Layer} layer
 * @param {Mode} mode
 * @param {number[]} index
 * @returns {Tensor} of the shape of F(v)
 */
export function cotangent_of(frozen, layer, mode, index) {
  check_index(layer, mode, index);
  const selector = new frozen.net.Tensor(layer.shape.reduce((a, b) => a * b, 1));
  for (const entry of units_of(layer, mode, index)) selector[entry] = 1;
  const [g] = /** @type {Primitive} */ (frozen.nodes[layer.number].primitive).pull(null, selector);
  if (mode.merge) return g;
  const channel = index[index.length - 2];
  return g.map((entry, i) => (i % layer.channels === channel ? entry : 0));
}

/** The entries of the layer's c that a unit of the mode is made of. @param {Layer} layer @param {Mode} mode @param {number[]} index */
function units_of(layer, mode, index) {
  const size = layer.shape.reduce((a, b) => a * b, 1), out = layer.shape[layer.shape.length - 1];
  if (mode.pool) return Array.from({ length: size / out }, (_, position) => position * out + index[index.length - 1]);
  const steps = steps_of(layer.shape);
  const at = [...index.slice(0, layer.shape.length - 1), index[index.length - 1]];
  return [at.reduce((sum, i, axis) => sum + i * steps[axis], 0)];
}

/**
 * What the network itself computes for the unit; the part of one in-channel by the layer's kernel.
 * @param {Frozen} frozen
 * @param {Layer} layer
 * @param {Mode} mode
 * @param {number[]} index
 * @param {Tensor} cotangent
 */
function network_value_of(frozen, layer, mode, index, cotangent) {
  if (!mode.merge) return inner(frozen.values[layer.reads], cotangent);
  return units_of(layer, mode, index).reduce((sum, entry) => sum + frozen.values[layer.number][entry], 0);
}

/** @param {Layer} layer @param {Mode} mode @param {number[]} index */
function check_index(layer, mode, index) {
  const axes = unit_axes(mode, layer);
  const fits = Array.isArray(index) && index.length === axes.length
    && index.every((i, axis) => Number.isInteger(i) && 0 <= i && i < axes[axis]);
  if (!fits) throw new InputError(`expected an index into units of shape ${axes} (${mode.name} of '${layer.name}'), got ${JSON.stringify(index)}.`);
}
