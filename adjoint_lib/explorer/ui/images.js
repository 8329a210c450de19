// @ts-check
/**
 * The image x: an embedded sample, or a picture of the reader's, maybe painted on, at some brightness.
 */

import {address_of, bytes_of, bytes_of_address} from "./data.js";

/** The brush's colours, by the letter that stands for them in an address. @type {Record<string, [string, number[]]>} */
export const PAINTS = {
  k: ["black", [0, 0, 0]],
  w: ["white", [255, 255, 255]],
  g: ["grey", [128, 128, 128]],
  r: ["red", [213, 0, 0]],
  y: ["yellow", [240, 228, 66]],
  e: ["green", [0, 158, 115]],
  b: ["blue", [0, 114, 178]],
};

/** The longest picture, in bytes, that an address holds. */
export const IN_ADDRESS = 16384;

/** The samples of a data set: images of one shape. */
export class Samples {
  /**
   * @param {string} text base64 of all images, as bytes or little-endian float32
   * @param {{shape: number[], kind: string, range: number[]|null}} about
   */
  constructor(text, {shape, kind, range}) {
    const bytes = bytes_of(text);
    this.size = shape.reduce((a, b) => a * b, 1);
    this.kind = kind;
    this.range = range;
    this.numbers = kind === "uint8" ? bytes : new Float32Array(bytes.buffer);
    this.count = this.numbers.length / this.size;
  }

  /** Image n, as in training. @returns {Float32Array} */
  image(n) {
    const some = this.numbers.subarray(n * this.size, (n + 1) * this.size);
    return this.kind === "uint8" ? this.scaled(some) : Float32Array.from(some);
  }

  /** Bytes 0 ... 255 as numbers of the range that the network was trained on. */
  scaled(bytes) {
    const [low, high] = this.range;
    return Float32Array.from(bytes, (b) => (low === 0 && high === 1 ? b / 255 : low + ((high - low) * b) / 255));
  }
}

/**
 * A picture from disk: its middle, cropped to the shape of the network's images and scaled down.
 * @param {File} file
 * @param {number[]} shape (rows, columns, 1 or 3)
 * @returns {Promise<Uint8Array>} its bytes in the order of `shape`
 */
export async function bytes_of_picture(file, [rows, columns, channels]) {
  let picture;
  try {
    picture = await createImageBitmap(file);
  } catch {
    throw new Error(`expected a picture such as PNG or JPEG, got ${file.name || "something else"}. Choose another file.`);
  }
  const ratio = Math.min(picture.width / columns, picture.height / rows);
  let width = columns * ratio, height = rows * ratio;
  /** @type {CanvasImageSource & {width: number, height: number}} */
  let from = picture;
  let left = (picture.width - width) / 2, top = (picture.height - height) / 2;
  while (width > 2 * columns) {  // by halves, so that each pixel is a mean of all it stands for
    from = drawn(from, left, top, width, height, Math.ceil(width / 2), Math.ceil(height / 2));
    [left, top, width, height] = [0, 0, from.width, from.height];
  }
  const small = drawn(from, left, top, width, height, columns, rows);
  const {data} = small.getContext("2d").getImageData(0, 0, columns, rows);
  const bytes = new Uint8Array(rows * columns * channels);
  for (let at = 0; at < rows * columns; at++)
    for (let c = 0; c < channels; c++) {
      const [r, g, b] = data.subarray(4 * at, 4 * at + 3);
      bytes[at * channels + c] = channels === 3 ? data[4 * at + c] : Math.round(0.299 * r + 0.587 * g + 0.114 * b);
    }
  return bytes;
}

function drawn(from, left, top, width, height, columns, rows) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [columns, rows];
  const context = canvas.getContext("2d", {willReadFrequently: true});
  context.fillStyle = "#fff";
  context.fillRect(0, 0, columns, rows);
  context.imageSmoothingQuality = "high";
  context.drawImage(from, left, top, width, height, 0, 0, columns, rows);
  return canvas;
}

/** What is painted, as text: "k10+3.2a_w4": runs of pixels in base 36, by colour. */
export function painted_text(paint) {
  const by_colour = {};
  for (const [pixel, colour] of [...paint].sort((a, b) => a[0] - b[0])) {
    const runs = (by_colour[colour] ??= []), last = runs[runs.length - 1];
    if (last && last[0] + last[1] === pixel) last[1]++;
    else runs.push([pixel, 1]);
  }
  const run = ([start, length]) => start.toString(36) + (length > 1 ? `+${length.toString(36)}` : "");
  return Object.entries(by_colour).map(([colour, runs]) => colour + runs.map(run).join(".")).join("_");
}

/** The pixels and colours of such a text. @returns {Map<number, string>} */
export function painted(text, pixels) {
  const paint = new Map();
  for (const part of text ? text.split("_") : []) {
    if (!(part[0] in PAINTS)) continue;
    for (const run of part.slice(1).split(".")) {
      const [start, length = 1] = run.split(/[+ ]/).map((t) => parseInt(t, 36));
      for (let at = start; at < start + length && at < pixels; at++) paint.set(at, part[0]);
    }
  }
  return paint;
}

/**
 * The image of a state.
 * @param {Object} state
 * @param {Samples} samples
 * @param {number[]} shape
 * @param {Uint8Array|null} own the reader's picture, if the address does not hold it
 * @returns {Float32Array}
 */
export function image_of(state, samples, shape, own) {
  const channels = shape[shape.length - 1], pixels = samples.size / channels;
  const bytes = state.own ? bytes_of_address(state.own) : own;
  const image = state.image === "own" && bytes?.length === samples.size ? samples.scaled(bytes) : samples.image(Number(state.image) || 0);
  for (const [pixel, colour] of painted(state.paint, pixels)) {
    const [r, g, b] = PAINTS[colour][1];
    const grey = Math.round(0.299 * r + 0.587 * g + 0.114 * b);
    const some = samples.scaled(channels === 3 ? [r, g, b] : new Array(channels).fill(grey));
    image.set(some, pixel * channels);
  }
  if (state.light === 1) return image;
  return image.map((v) => v * state.light);
}

/** The reader's picture as an address holds it, or nothing if it is too large for one. */
export const own_text = (bytes) => (bytes.length <= IN_ADDRESS ? address_of(bytes) : "");
