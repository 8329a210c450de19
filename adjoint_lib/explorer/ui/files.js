// @ts-check
/** Files for the reader: PNG, JSON, and NumPy's own format. */

import {aspect_of} from "./pictures.js";

/** An array as a .npy file. @param {Float32Array<ArrayBuffer>|Float64Array<ArrayBuffer>} values @param {number[]} shape */
export function npy(values, shape) {
  const kind = values instanceof Float64Array ? "<f8" : "<f4";
  const tuple = shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(", ")})`;
  const said = `{'descr': '${kind}', 'fortran_order': False, 'shape': ${tuple}, }`;
  const header = said + " ".repeat(63 - ((10 + said.length) % 64)) + "\n";
  const start = new Uint8Array(10 + header.length);
  start.set([0x93, 78, 85, 77, 80, 89, 1, 0, header.length & 255, header.length >> 8]);
  for (let at = 0; at < header.length; at++) start[10 + at] = header.charCodeAt(at);
  return new Blob([start, values], {type: "application/octet-stream"});
}

/** Hand a file to the reader. @param {Blob} blob @param {string} name */
export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/**
 * Some pictures side by side, each under its title, with lines of text and the colours below: one PNG.
 * @param {{title: string, canvas: HTMLCanvasElement}[]} pictures
 * @param {string[]} lines
 * @param {{table: Uint8Array, ends: string[]}} colours from the first end to the second
 */
export function png(pictures, lines, {table, ends}) {
  const size = 256, gap = 16, canvas = document.createElement("canvas");
  const heights = pictures.map((picture) => size / aspect_of(picture.canvas));
  canvas.width = pictures.length * (size + gap) + gap;
  const below = Math.max(...heights) + 60;
  canvas.height = below + 24 * (lines.length + 1);
  const context = canvas.getContext("2d");
  context.fillStyle = "#fff";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.imageSmoothingEnabled = false;
  context.fillStyle = "#222";
  context.font = "15px system-ui, sans-serif";
  pictures.forEach((picture, at) => {
    const left = gap + at * (size + gap);
    context.fillText(picture.title, left, 24);
    context.drawImage(picture.canvas, left, 34, size, heights[at]);
  });
  lines.forEach((text, at) => context.fillText(text, gap, below + 24 * at, canvas.width - 2 * gap));
  const base = below + 24 * lines.length, left = gap + Math.ceil(context.measureText(ends[0]).width) + 8;
  context.fillText(ends[0], gap, base);
  for (let x = 0; x < 255; x++) {
    context.fillStyle = `rgb(${table.subarray(6 * x, 6 * x + 3).join(" ")})`;
    context.fillRect(left + x, base - 12, 1, 12);
  }
  context.fillStyle = "#222";
  context.fillText(ends[1], left + 263, base);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}
