// @ts-check
/**
 * Flat arrays in row-major order, and which entries of one belong to which of another.
 *
 * A tensor is a typed array; its shape is known to whoever holds it. Where entries move or are
 * broadcast, an index says for each entry of one tensor where in the other it comes from. Indices
 * depend on shapes alone, so each is made once.
 */

/** @typedef {Float32Array | Float64Array} Tensor */
/** @typedef {readonly number[]} Shape */
/** @typedef {{data: Float64Array, shape: number[]}} Parameter  weights: always held in double */

/** @param {Shape} shape */
export function product(shape) {
  return shape.reduce((size, length) => size * length, 1);
}

/**
 * A tensor of the same dtype as another one: of this size, zero; or with these entries.
 * @param {Tensor} x
 * @param {number | ArrayLike<number>} content
 * @returns {Tensor}
 */
export function like(x, content) {
  return x instanceof Float32Array ? new Float32Array(/** @type {any} */ (content)) : new Float64Array(/** @type {any} */ (content));
}

/**
 * Sum of the products of two arrays' entries, in double.
 * @param {ArrayLike<number>} a
 * @param {ArrayLike<number>} b
 */
export function inner(a, b, start = 0, stop = a.length) {
  let sum = 0;
  for (let i = start; i < stop; i++) sum += a[i] * b[i];
  return sum;
}

/** Whether all entries are finite numbers. @param {Tensor} x */
export function finite(x) {
  for (let i = 0; i < x.length; i++) if (!(Math.abs(x[i]) < Infinity)) return false;
  return true;
}

/**
 * @param {Shape} shape
 * @returns {number[]} how far apart neighbours along each axis are
 */
export function steps_of(shape) {
  const steps = shape.map(() => 1);
  for (let axis = shape.length - 2; axis >= 0; axis--) steps[axis] = steps[axis + 1] * shape[axis + 1];
  return steps;
}

/**
 * For each entry of a box, in row-major order: first + the sum of its coordinates times `steps`.
 * @param {Shape} shape  of the box
 * @param {readonly number[]} steps
 */
export function positions(shape, steps, first = 0) {
  let found = Int32Array.of(first);
  shape.forEach((length, axis) => {
    const next = new Int32Array(found.length * length);
    for (let i = 0, n = 0; i < found.length; i++) {
      for (let at = 0; at < length; at++) next[n++] = found[i] + at * steps[axis];
    }
    found = next;
  });
  return found;
}

/** @type {Map<string, Int32Array>} */
const made = new Map();

/**
 * @param {any[]} key
 * @param {() => Int32Array} make
 */
function once(key, make) {
  const name = JSON.stringify(key);
  const found = made.get(name) ?? make();
  made.set(name, found);
  return found;
}

/**
 * Which entry of an array of shape `from` each entry of shape `to` reads when it is broadcast.
 * @param {Shape} from  its axes are the last ones of `to`
 * @param {Shape} to
 */
export function broadcast(from, to) {
  return once(["broadcast", from, to], () => {
    const aligned = to.map((_, axis) => from[from.length - to.length + axis] ?? 1);
    const steps = steps_of(aligned).map((step, axis) => (aligned[axis] === 1 ? 0 : step));
    return positions(to, steps);
  });
}

/**
 * Where the entries of a tensor are after its axes are put in another order: for each entry of
 * the result, that of the original.
 * @param {Shape} shape  of the original
 * @param {readonly number[]} order
 */
export function permuted(shape, order) {
  return once(["permuted", shape, order], () => {
    const steps = steps_of(shape);
    return positions(order.map((axis) => shape[axis]), order.map((axis) => steps[axis]));
  });
}

/**
 * The entries of a tensor that are left when margins are cut off.
 * @param {Shape} shape  with the margins
 * @param {readonly (readonly number[])[]} margins  (before, after) of each axis
 */
export function within(shape, margins) {
  return once(["within", shape, margins], () => {
    const steps = steps_of(shape);
    const first = margins.reduce((sum, [before], axis) => sum + before * steps[axis], 0);
    return positions(shape.map((length, axis) => length - margins[axis][0] - margins[axis][1]), steps, first);
  });
}

/**
 * x at these entries.
 * @param {Tensor} x
 * @param {ArrayLike<number>} index
 */
export function gather(x, index) {
  const found = like(x, index.length);
  for (let i = 0; i < found.length; i++) found[i] = x[index[i]];
  return found;
}

/**
 * The adjoint of `gather`: each entry of g is added where it was read. Sums are in double.
 * @param {Tensor} g
 * @param {ArrayLike<number>} index
 * @param {number} size  of the result
 */
export function scatter(g, index, size) {
  const sums = new Float64Array(size);
  for (let i = 0; i < g.length; i++) sums[index[i]] += g[i];
  return g instanceof Float64Array ? sums : like(g, sums);
}
