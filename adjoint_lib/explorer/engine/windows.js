// @ts-check
/**
 * Windows: which part of the image a unit can read at all, by receptive-field arithmetic.
 *
 * A box is a range [first, one past the last) along each axis of a node. `READS` says for each kind of
 * primitive which box of its inputs a box of its output reads; one that is not listed reads all.
 */

import { IMAGE } from "./graph.js";
import {
  Activation, AveragePool, Concatenate, Conv, ConvTranspose, Crop, DepthwiseConv, Extremum, MaxPool,
  Pad, Permute, Reshape, Scale, Sum,
} from "./primitives.js";

/** @typedef {import("./arrays.js").Shape} Shape */
/** @typedef {import("./network.js").Network} Network */
/** @typedef {import("./network.js").Layer} Layer */
/** @typedef {number[][]} Box */

/**
 * The pixels that a unit can read: a range along each axis of x but the last, its channels. Empty
 * ([0, 0]) if there is none.
 * @param {Network} net
 * @param {Layer} layer
 * @param {{merge: boolean, pool: boolean}} mode
 * @param {number[]} index
 * @param {number[] | null} against  another unit, whose pixels count too
 */
export function receptive_field(net, layer, mode, index, against = null) {
  /** @type {Map<number, Box>} */
  const boxes = new Map();
  for (const unit of against === null ? [index] : [index, against]) {
    const axes = layer.shape.slice(0, -1).map((size, axis) => (mode.pool ? [0, size] : [unit[axis], unit[axis] + 1]));
    const out = unit[unit.length - 1];
    const [box] = read_by(net, layer.number, [...axes, [out, out + 1]]);
    if (!mode.merge) box[box.length - 1] = [unit[unit.length - 2], unit[unit.length - 2] + 1];
    join(boxes, layer.reads, box);
  }
  for (let number = layer.reads; number > IMAGE; number--) {
    const box = boxes.get(number);
    if (!box || net.nodes[number].primitive === null) continue;
    read_by(net, number, box).forEach((part, n) => join(boxes, net.nodes[number].inputs[n], part));
  }
  const spatial = Math.max(1, net.input_shape.length - 1);
  return (boxes.get(IMAGE) ?? net.input_shape.map(() => [0, 0])).slice(0, spatial);
}

/** @param {Network} net @param {number} number @param {Box} box @returns {Box[]} of each input; empty where nothing is read */
function read_by(net, number, box) {
  const { primitive, inputs } = net.nodes[number];
  const rule = READS.find(([kinds]) => kinds.some((kind) => primitive instanceof kind));
  const whole = inputs.map((i) => net.nodes[i].shape.map((size) => [0, size]));
  return rule ? rule[1](primitive, box, whole) : whole;
}

/** @type {[any[], (primitive: any, box: Box, whole: Box[]) => Box[]][]} */
const READS = [
  [[Conv, AveragePool, MaxPool, DepthwiseConv], (primitive, box, [whole]) => {
    const axes = primitive.sliding.axes.map((axis, a) => {
      const first = axis.stride * box[a][0] - axis.before;
      const last = axis.stride * (box[a][1] - 1) - axis.before + axis.dilation * (axis.taps - 1);
      return [Math.max(0, first), Math.min(axis.length, last + 1)];
    });
    return [[...axes, channels_read(primitive, box[box.length - 1], whole[whole.length - 1])]];
  }],
  [[ConvTranspose], (primitive, box, [whole]) => {
    const axes = primitive.sliding.axes.map((axis, a) => {
      const first = Math.ceil((box[a][0] + axis.before - axis.dilation * (axis.taps - 1)) / axis.stride);
      const last = Math.floor((box[a][1] - 1 + axis.before) / axis.stride);
      return [Math.max(0, first), Math.min(axis.outputs, last + 1)];
    });
    return [[...axes, whole[whole.length - 1]]];
  }],
  [[Scale, Activation, Sum, Extremum], (primitive, box, whole) =>
    whole.map((input) => {
      const missing = box.length - input.length;
      return input.map(([first, stop], axis) => (stop === 1 ? [first, stop] : box[axis + missing]));
    })],
  [[Pad], (primitive, box, [whole]) =>
    [whole.map(([, size], axis) => clipped(box[axis], primitive.held.margins[axis][0], size))]],
  [[Crop], (primitive, box) =>
    [box.map((range, axis) => range.map((end) => end + primitive.held.margins[axis][0]))]],
  [[Permute], (primitive, box, [whole]) =>
    [whole.map((_, axis) => box[primitive.held.order.indexOf(axis)])]],
  [[Reshape], (primitive, box, [whole]) => {  // axes of length 1 come and go
    const ranges = box.filter((_, axis) => primitive.shape[axis] > 1), long = whole.filter(([, size]) => size > 1);
    const same = String(primitive.shape.filter((/** @type {number} */ size) => size > 1)) === String(long.map(([, size]) => size));
    return [same ? whole.map((range) => (long.includes(range) ? ranges[long.indexOf(range)] : range)) : whole];
  }],
  [[Concatenate], (primitive, box, whole) => {
    const { axis, sizes } = primitive.held;
    let before = 0;
    return whole.map((input, n) => {
      before += n ? sizes[n - 1] : 0;
      return input.map(([, size], a) => (a === axis ? clipped(box[a], before, size) : box[a]));
    });
  }],
];

/** @param {any} primitive @param {number[]} range @param {number[]} whole */
function channels_read(primitive, [first, stop], whole) {
  if (primitive instanceof Conv) {
    const [c_in, c_out] = primitive.kernel.shape.slice(-2), each = c_out / primitive.held.groups;
    return [Math.floor(first / each) * c_in, (Math.floor((stop - 1) / each) + 1) * c_in];
  }
  const multiplier = primitive instanceof DepthwiseConv ? primitive.kernel.shape[3] : 1;
  return [Math.floor(first / multiplier), Math.min(whole[1], Math.floor((stop - 1) / multiplier) + 1)];
}

/** A range moved by `before` entries, and the part of it that lies within 0 ... size. @param {number[]} range @param {number} before @param {number} size */
function clipped([first, stop], before, size) {
  return [Math.min(size, Math.max(0, first - before)), Math.max(0, Math.min(size, stop - before))];
}

/** Let the box of a node hold this one too. @param {Map<number, Box>} boxes @param {number} number @param {Box} box */
function join(boxes, number, box) {
  if (box.some(([first, stop]) => stop <= first)) return;
  const old = boxes.get(number) ?? box;
  boxes.set(number, box.map(([first, stop], axis) => [Math.min(first, old[axis][0]), Math.max(stop, old[axis][1])]));
}
