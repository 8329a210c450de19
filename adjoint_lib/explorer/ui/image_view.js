// @ts-check
/** The image: choosing it, painting on it, its brightness. */

import {PAINTS, bytes_of_picture, image_of, own_text, painted, painted_text} from "./images.js";
import {draw_image, frame} from "./pictures.js";
import {number, percent, whole} from "./words.js";

/** What a unit's values at all images depend on. */
const UNIT = ["net", "data", "dtype", "layer", "mode", "unit", "against", "k", "light"];

export class ImageView {
  constructor(explorer) {
    this.explorer = explorer;
    this.parts = explorer.parts;
    this.colour = "k";
  }

  listen() {
    const {parts, explorer} = this;
    parts.light.addEventListener("input", () => explorer.update({light: Number(parts.light.value)}, {gently: true}));
    parts.own.addEventListener("change", () => this.take(parts.own.files[0]));
    parts.brush.addEventListener("change", () => {
      parts["brush-tools"].hidden = !parts.brush.checked;
      parts.input.classList.toggle("painting", parts.brush.checked);
    });
    parts.unpaint.addEventListener("click", () => explorer.update({paint: ""}));
    this.fill_paints();
    for (const name of ["input", "h-canvas", "p-canvas"]) {
      parts[name].addEventListener("pointermove", (event) => this.moved(event, name === "input"));
      parts[name].addEventListener("pointerdown", (event) => this.moved(event, name === "input"));
      parts[name].addEventListener("pointerleave", () => explorer.point(null));
    }
    parts["at-images"].addEventListener("click", () => this.find_values());
    parts.input.addEventListener("keydown", (event) => this.keyed(event));
    parts.input.addEventListener("blur", () => explorer.point(null));
  }

  fill_paints() {
    /** @type {Map<string, HTMLButtonElement>} */
    const buttons = new Map();
    for (const [letter, [name, rgb]] of Object.entries(PAINTS)) {
      const button = document.createElement("button");
      button.type = "button";
      button.title = name;
      button.setAttribute("aria-label", name);
      button.style.background = `rgb(${rgb.join(" ")})`;
      button.addEventListener("click", () => choose(letter));
      buttons.set(letter, button);
    }
    const choose = (letter) => {
      this.colour = letter;
      for (const [other, button] of buttons) button.setAttribute("aria-pressed", String(other === letter));
    };
    this.parts.paints.append(...buttons.values());
    choose(this.colour);
  }

  get frame() {
    return frame(this.explorer.net.input_shape);
  }

  /** The reader's own picture. */
  async take(file) {
    if (!file) return;
    const {explorer} = this;
    try {
      explorer.own = await bytes_of_picture(file, explorer.net.input_shape);
      explorer.own_number++;
      await explorer.update({image: "own", own: own_text(explorer.own), paint: "", light: 1});
    } catch (error) {
      explorer.fail(error);
    }
  }

  // ---------------------------------------------------------------- pointing and painting

  moved(event, paints) {
    const {explorer, parts} = this;
    if (!explorer.net) return;
    const {rows, columns} = this.frame;
    const box = event.currentTarget.getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left) / box.width) * columns);
    const row = Math.floor(((event.clientY - box.top) / box.height) * rows);
    if (row < 0 || column < 0 || row >= rows || column >= columns) return;
    explorer.point([row, column]);
    if (paints && parts.brush.checked && event.buttons) this.paint(row, column);
  }

  keyed(event) {
    const {explorer, parts} = this;
    if (!explorer.net) return;
    const step = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]}[event.key];
    const {rows, columns} = this.frame;
    const [row, column] = explorer.pixel ?? [Math.floor(rows / 2), Math.floor(columns / 2)];
    if (step) {
      const within = (value, size) => Math.max(0, Math.min(size - 1, value));
      explorer.point([within(row + step[0], rows), within(column + step[1], columns)]);
    } else if (event.key === " " && parts.brush.checked) this.paint(row, column);
    else return;
    event.preventDefault();
  }

  paint(row, column) {
    const {rows, columns} = this.frame, {explorer} = this;
    const size = Number(this.parts["brush-size"].value), before = Math.floor((size - 1) / 2);
    const paint = painted(explorer.state.paint, rows * columns);
    for (let y = row - before; y < row - before + size; y++)
      for (let x = column - before; x < column - before + size; x++)
        if (y >= 0 && x >= 0 && y < rows && x < columns) paint.set(y * columns + x, this.colour);
    const text = painted_text(paint);
    if (text !== explorer.state.paint) explorer.update({paint: text}, {gently: true});
  }

  // ---------------------------------------------------------------- the unit at every image

  /** The unit's value at each embedded image, one after the other; once more, and it stops. */
  async find_values() {
    const {explorer, parts} = this, {sources, samples, state} = explorer;
    if (this.finding) return this.finding.abort();
    const {signal} = (this.finding = new AbortController()), said = parts["at-images-said"];
    const asked = {network: sources.file_of(state.net, state.data), dtype: state.dtype, k: state.k, ...explorer.asked_unit()};
    parts["at-images"].textContent = "Stop";
    this.show_values({key: explorer.key(UNIT), values: []});
    try {
      for (let n = 0; n < samples.count; n++) {
        said.textContent = `Image ${n + 1} of ${samples.count} …`;
        const image = await sources.image({...state, image: String(n), own: "", paint: ""}, null);
        const {network_value} = await sources.engine.unit({...asked, image}, {signal});
        this.values.values.push(network_value);
        this.show_values(this.values);
      }
      const {values} = this.values, most = values.indexOf(Math.max(...values)), least = values.indexOf(Math.min(...values));
      said.textContent =
        `The numbers stand below the images: largest at ${this.name_of(most)}, ${number(values[most], 4)}, ` +
        `smallest at ${this.name_of(least)}, ${number(values[least], 4)}.`;
    } catch (error) {
      said.textContent = signal.aborted ? "" : error.message;
    } finally {
      this.finding = null;
      parts["at-images"].textContent = "Its value at every image";
    }
  }

  /** Put the values below the images, those that are known. */
  show_values(found) {
    this.values = found;
    [...this.parts.samples.children].forEach((button, n) => {
      const value = found?.values[n];
      button.lastElementChild.textContent = value === undefined ? "" : number(value, 3);
    });
  }

  /** An embedded image in words. @param {number} n */
  name_of(n) {
    const {labels, classes} = this.explorer.config.datasets.find(({key}) => key === this.explorer.state.data);
    return `image ${n}${labels ? `: ${classes?.[labels[n]] ?? labels[n]}` : ""}`;
  }

  // ---------------------------------------------------------------- showing

  show_image() {
    const {explorer, parts} = this;
    if (this.values && this.values.key !== explorer.key(UNIT)) {
      this.finding?.abort();
      this.show_values(null);
      parts["at-images-said"].textContent = "";
    }
    const {state, image} = explorer;
    const about = explorer.config.datasets.find(({key}) => key === state.data);
    const [low, high] = about.range ?? extent(image);
    const how = {...this.frame, low, high};
    draw_image(parts["x-canvas"], image, how);
    const said = state.image === "own" ? "Your picture" : capital(this.name_of(Number(state.image)));
    parts["image-name"].textContent = said + (state.paint ? ", painted on" : "");
    parts.input.setAttribute("aria-label", parts["image-name"].textContent);
    parts.light.value = state.light;
    parts["light-said"].textContent = `× ${state.light.toFixed(2)}`;
    parts.light.setAttribute("aria-valuetext", parts["light-said"].textContent);
    parts["own-row"].hidden = parts["brush-row"].hidden = !about.range || !explorer.samples.range;
    this.show_samples(how);
  }

  show_samples(how) {
    const {explorer, parts} = this;
    if (this.samples !== explorer.samples) {
      this.samples = explorer.samples;
      const buttons = Array.from({length: this.samples.count}, (_, n) => {
        const button = document.createElement("button"), canvas = document.createElement("canvas");
        const value = Object.assign(document.createElement("span"), {className: "small"});
        button.type = "button";
        canvas.setAttribute("role", "img");
        canvas.setAttribute("aria-label", capital(this.name_of(n)));
        button.addEventListener("click", () => explorer.update({image: String(n), own: "", paint: ""}));
        draw_image(canvas, this.samples.image(n), how);
        canvas.classList.toggle("series", how.rows === 1);
        button.append(canvas, value);
        return button;
      });
      parts.samples.replaceChildren(...buttons);
    }
    [...parts.samples.children].forEach((button, n) => button.setAttribute("aria-pressed", String(explorer.state.image === String(n))));
  }

  show_unit() {
    const {explorer, parts} = this;
    const {rows, columns} = this.frame, field = explorer.unit.receptive_field;
    const place = spans(field, explorer.net.input_shape);
    set_box(parts["x-field"], place, rows, columns);
  }

  show_comparison() {
    const {flipped, all, usual} = this.explorer.comparison ?? {};
    const text = this.parts.flips;
    if (flipped === undefined) {
      text.textContent = "Turn it: the biases stay as they are, so ReLUs flip, and H jumps with them.";
      return;
    }
    text.textContent =
      `${whole(flipped)} of ${whole(all)} ReLUs (${percent(flipped / all)}) are flipped against full brightness; ` +
      `H has changed by ${percent(change(this.explorer.unit, usual))}.`;
  }

  show_pixel() {
    const {explorer, parts} = this;
    if (!explorer.net) return;
    const {rows, columns, channels} = this.frame;
    for (const name of ["x-cursor", "h-cursor", "p-cursor"]) {
      parts[name].hidden = !explorer.pixel;
      if (explorer.pixel) {
        const [row, column] = explorer.pixel;
        set_box(parts[name], {top: row, bottom: row + 1, left: column, right: column + 1}, rows, columns);
      }
    }
    if (!explorer.pixel || !explorer.unit) {
      parts.pixel.textContent = "Point at a pixel to read its numbers.";
      return;
    }
    const [row, column] = explorer.pixel, start = (row * columns + column) * channels;
    const some = (values) => Array.from(values.slice(start, start + channels), (v) => number(v, 3)).join(", ");
    const {image} = explorer.unit, x = explorer.image;
    const products = Array.from({length: channels}, (_, c) => x[start + c] * image[start + c]);
    parts.pixel.textContent =
      `Pixel (${row}, ${column}): x = ${some(x)}; H_I = ${some(image)}; products ${some(products)}, ` +
      `together ${number(products.reduce((a, b) => a + b, 0), 3)}.`;
  }
}

/** How far H is from another H, as a share of that. */
export function change(unit, usual) {
  let apart = 0, size = 0;
  for (const part of ["image", "bias"])
    for (let at = 0; at < usual[part].length; at++) {
      apart += (unit[part][at] - usual[part][at]) ** 2;
      size += usual[part][at] ** 2;
    }
  return size ? Math.sqrt(apart / size) : Number(apart > 0);
}

/** Put a box over rows and columns of a picture. */
export function set_box(box, {top, bottom, left, right}, rows, columns) {
  box.hidden = false;
  box.style.top = `${(100 * top) / rows}%`;
  box.style.height = `${(100 * (bottom - top)) / rows}%`;
  box.style.left = `${(100 * left) / columns}%`;
  box.style.width = `${(100 * (right - left)) / columns}%`;
}

/** A field over the axes of x as rows and columns of its picture. */
function spans(field, shape) {
  const {rows, columns} = frame(shape), all = {top: 0, bottom: rows, left: 0, right: columns};
  if (shape.length !== 2 && shape.length !== 3) return all;
  const [left, right] = field[shape.length - 2];
  if (shape.length === 2) return {...all, left, right};
  const [top, bottom] = field[0];
  return {top, bottom, left, right};
}

const capital = (text) => text[0].toUpperCase() + text.slice(1);

function extent(image) {
  let low = Infinity, high = -Infinity;
  for (const v of image) {
    low = Math.min(low, v);
    high = Math.max(high, v);
  }
  return high > low ? [low, high] : [low - 1, low + 1];
}
