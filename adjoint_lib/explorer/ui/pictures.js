// @ts-check
/** Arrays as pictures on a canvas, one small square a number. */

import {place_of} from "./colours.js";

/**
 * The two axes that a picture of an array of this shape has, and its channels.
 *
 * Maps (h, w, c) are what they are; a vector is one row; volumes lie below each other.
 * @param {number[]} shape
 */
export function frame(shape) {
  if (shape.length < 2) return {rows: 1, columns: shape[0] ?? 1, channels: 1};
  const channels = shape[shape.length - 1], columns = shape[shape.length - 2];
  return {rows: shape.slice(0, -2).reduce((a, b) => a * b, 1), columns, channels};
}

/** How wide a picture is shown for its height: a series is no hair, and a volume's slices are no tower. */
export const aspect_of = ({width, height}) => Math.max(1 / 2, Math.min(4, width / height));

/** A canvas of this many squares, each `zoom` pixels wide. */
function sized(canvas, columns, rows, zoom) {
  canvas.width = columns * zoom;
  canvas.height = rows * zoom;
  canvas.style.aspectRatio = String(aspect_of(canvas));
  return canvas.getContext("2d");
}

/** How many pixels a square gets so that the picture is sharp, and not large. */
export const zoom_for = (columns, rows) => Math.max(1, Math.floor(512 / Math.max(columns, rows)));

/**
 * One number a square, in signed colours.
 * @param {HTMLCanvasElement} canvas
 * @param {ArrayLike<number>} values row by row
 * @param {{columns: number, rows: number, scale: number, table: Uint8Array, dots?: boolean,
 *     crosses?: ArrayLike<number> | null}} how
 *     dots: mark what is below zero by a dot too; crosses: mark those that are not 0 here
 */
export function draw_signed(canvas, values, {columns, rows, scale, table, dots = false, crosses = null}) {
  const zoom = dots || crosses ? Math.max(5, zoom_for(columns, rows)) : 1;
  const context = sized(canvas, columns, rows, zoom);
  const small = new ImageData(columns, rows);
  for (let at = 0; at < columns * rows; at++) paint(small.data, at, table, place_of(values[at] ?? 0, scale));
  if (zoom === 1) return context.putImageData(small, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(of_image_data(small), 0, 0, columns * zoom, rows * zoom);
  for (let at = 0; at < columns * rows; at++) {
    const left = (at % columns) * zoom, top = Math.floor(at / columns) * zoom;
    if (dots && values[at] < -0.02 * scale) {
      context.fillStyle = values[at] < -scale / 2 ? "#fff" : "#000";
      const size = Math.max(1, Math.round(zoom / 4)), margin = Math.floor((zoom - size) / 2);
      context.fillRect(left + margin, top + margin, size, size);
    }
    if (crosses?.[at]) draw_cross(context, left + zoom / 2, top + zoom / 2, zoom / 4);
  }
}

/** A cross that is seen on any colour: white on black. */
function draw_cross(context, x, y, reach) {
  for (const {colour, width} of [{colour: "#000", width: reach / 1.5}, {colour: "#fff", width: reach / 4}]) {
    context.strokeStyle = colour;
    context.lineWidth = Math.max(1, width);
    context.beginPath();
    for (const turn of [-1, 1]) {
      context.moveTo(x - reach, y - turn * reach);
      context.lineTo(x + reach, y + turn * reach);
    }
    context.stroke();
  }
}

/** An image (rows, columns, channels) of numbers from `low` to `high`. */
export function draw_image(canvas, values, {rows, columns, channels, low, high}) {
  const context = sized(canvas, columns, rows, 1);
  const small = new ImageData(columns, rows);
  for (let at = 0; at < columns * rows; at++) {
    for (let c = 0; c < 3; c++) {
      const value = channels === 3 ? values[3 * at + c] : mean(values, at * channels, channels);
      small.data[4 * at + c] = Math.max(0, Math.min(255, Math.round((255 * (value - low)) / (high - low))));
    }
    small.data[4 * at + 3] = 255;
  }
  context.putImageData(small, 0, 0);
}

/** How many pixels a unit gets where all maps are side by side, so that the gaps stay narrow. */
export const zoom_of_maps = (columns, rows) => Math.max(rows === 1 ? 3 : 1, Math.round(8 / Math.max(columns, rows)));

/**
 * All maps of a layer side by side, with gaps one pixel wide.
 * @param {ArrayLike<number>} values (rows, columns, channels)
 */
export function draw_maps(canvas, values, {rows, columns, channels, across, scale, table}) {
  const zoom = zoom_of_maps(columns, rows), wide = columns * zoom + 1, high = rows * zoom + 1;
  const context = sized(canvas, across * wide + 1, Math.ceil(channels / across) * high + 1, 1);
  const all = context.createImageData(canvas.width, canvas.height);
  for (let i = 0; i < channels; i++)
    for (let y = 0; y < rows * zoom; y++)
      for (let x = 0; x < columns * zoom; x++) {
        const left = (i % across) * wide + 1 + x, top = Math.floor(i / across) * high + 1 + y;
        const value = values[(Math.floor(y / zoom) * columns + Math.floor(x / zoom)) * channels + i];
        paint(all.data, top * canvas.width + left, table, place_of(value, scale));
      }
  context.putImageData(all, 0, 0);
}

/**
 * One channel of an array (rows, columns, channels), or all of them added.
 * @param {ArrayLike<number>} values @param {number} channels @param {number | string} which a number, or "sum"
 */
export function channel(values, channels, which) {
  const count = values.length / channels, found = new Float64Array(count);
  for (let at = 0; at < count; at++)
    if (which === "sum") for (let c = 0; c < channels; c++) found[at] += values[at * channels + c];
    else found[at] = values[at * channels + Number(which)];
  return found;
}

/** How many maps to put in a row: about `shape` as wide as high, with few places left empty; series, one. */
export function across_for(channels, columns, rows, shape) {
  if (rows === 1 && columns > 1) return 1;
  const least = Math.min(channels, 4);
  let best = least, worst = Infinity;
  for (let n = least; n <= Math.min(channels, 32); n++) {
    const down = Math.ceil(channels / n);
    const odd = Math.abs(Math.log((n * (columns + 1)) / (down * (rows + 1)) / shape)) + (2 * (n * down - channels)) / channels;
    if (odd < worst) [best, worst] = [n, odd];
  }
  return best;
}

function mean(values, start, count) {
  let sum = 0;
  for (let c = 0; c < count; c++) sum += values[start + c];
  return sum / count;
}

function paint(data, at, table, place) {
  for (let c = 0; c < 3; c++) data[4 * at + c] = table[3 * place + c];
  data[4 * at + 3] = 255;
}

function of_image_data(small) {
  const canvas = document.createElement("canvas");
  sized(canvas, small.width, small.height, 1).putImageData(small, 0, 0);
  return canvas;
}
