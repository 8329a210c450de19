/** Files for the reader: PNG, JSON, and NumPy's own format. */

/** An array as a .npy file. @param {Float32Array|Float64Array} values @param {number[]} shape */
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
 * Some pictures side by side, each under its title, with a line of text below: one PNG.
 * @param {{title: string, canvas: HTMLCanvasElement}[]} pictures @param {string} text
 */
export function png(pictures, text) {
  const size = 256, gap = 16, canvas = document.createElement("canvas");
  const heights = pictures.map(({canvas: {width, height}}) => (size * height) / width);
  canvas.width = pictures.length * (size + gap) + gap;
  canvas.height = Math.max(...heights) + 72;
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
  context.fillText(text, gap, canvas.height - 14, canvas.width - 2 * gap);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}
