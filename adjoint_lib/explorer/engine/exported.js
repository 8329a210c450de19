// @ts-check
/** A file written by `net.export` as a network. `explorer/export.py` describes its form. */

import { product } from "./arrays.js";
import { EquivalentNet } from "./equivalent_net.js";
import { DataError, InputError } from "./errors.js";
import { Graph } from "./graph.js";
import { KINDS } from "./primitives.js";
import { sha256 } from "./sha256.js";

/** @typedef {import("./graph.js").Node} Node */

const FORMAT = "adjoint-network 1\n";
const DIGITS = 64; // of the digest, which is followed by a line's end

/**
 * The network of an exported file's bytes.
 * @param {Uint8Array} bytes
 * @param {"float32" | "float64"} [dtype]  to compute in; by default that of the file's numbers
 */
export function unpacked(bytes, dtype) {
  const found = text(bytes.subarray(0, FORMAT.length));
  if (found !== FORMAT) throw new DataError(`expected a file that begins with ${JSON.stringify(FORMAT)}, got ${JSON.stringify(found)}.`);
  const begin = FORMAT.length + DIGITS + 1;
  if (text(bytes.subarray(FORMAT.length, begin - 1)) !== sha256(bytes.subarray(begin))) {
    throw new DataError("the content does not have the digest that is written above it. Export it again.");
  }
  const end = bytes.indexOf(10, begin);
  const written = JSON.parse(text(bytes.subarray(begin, end)));
  const wide = written.dtype === "float64";
  const numbers = bytes.slice(end + 1); // its own buffer: where a typed array begins matters
  const flat = wide ? new Float64Array(numbers.buffer) : new Float32Array(numbers.buffer);
  dtype ??= written.dtype;
  if (dtype !== "float32" && dtype !== "float64") throw new InputError(`expected dtype float32 or float64, got ${JSON.stringify(dtype)}.`);
  const round = dtype === "float32" ? Math.fround : (/** @type {number} */ number) => number;

  /** @param {{start: number, shape: number[]}} array */
  const array_of = ({ start, shape }) => {
    const stop = start + product(shape);
    if (!(start >= 0 && stop <= flat.length)) throw new DataError(`expected ${stop} numbers or more, got ${flat.length}.`);
    const data = new Float64Array(flat.subarray(start, stop));
    if (wide && dtype === "float32") data.forEach((number, i) => (data[i] = Math.fround(number)));
    const bad = data.find((number) => !Number.isFinite(number));
    if (bad !== undefined) throw new InputError(`expected weights finite in ${dtype}, got ${bad}.`);
    return { data, shape };
  };
  /** @param {any} field */
  const rounded = (field) => (Array.isArray(field) ? field.map(rounded) : typeof field === "number" ? round(field) : field);
  /** @param {any} field */
  const field_of = (field) => (field?.shape ? array_of(field) : rounded(field));

  /** @type {Node[]} */
  const nodes = [];
  for (const { name, shape, source, inputs = [], primitive } of written.nodes) {
    if (source) {
      const values = source.values ? array_of(source.values).data : null;
      nodes.push({ name, shape, inputs, primitive: null, source: { origin: source.origin, values } });
      continue;
    }
    const { kind, ...fields } = primitive;
    const Kind = Object.hasOwn(KINDS, kind) ? KINDS[kind] : null;
    if (!Kind || String(Object.keys(fields).sort()) !== String([...Kind.fields].sort())) {
      throw new DataError(`expected a primitive of the engine, got ${kind} with ${Object.keys(fields)} at node '${name}'. Export it again with this version.`);
    }
    const held = Object.fromEntries(Object.entries(fields).map(([key, field]) => [key, field_of(field)]));
    const shapes = inputs.map((/** @type {number} */ i) => nodes[i].shape);
    nodes.push({ name, shape, inputs, primitive: new Kind(held, shapes, shape), source: null });
  }
  const net = new EquivalentNet(written.name, new Graph(nodes, written.outputs), dtype);
  return Object.assign(net, { digest: written.digest });
}

/** Bytes of ASCII as text. @param {Uint8Array} bytes */
function text(bytes) {
  let found = "";
  for (let i = 0; i < bytes.length; i += 4096) found += String.fromCharCode(...bytes.subarray(i, i + 4096));
  return found;
}

/** The bytes that a base64 text stands for. @param {string} base64 @returns {Uint8Array} */
export function bytes_of(base64) {
  const quick = /** @type {any} */ (Uint8Array).fromBase64;
  if (quick) return quick.call(Uint8Array, base64);
  const letters = atob(base64), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}
