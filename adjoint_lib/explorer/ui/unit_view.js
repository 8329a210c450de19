// @ts-check
/** One unit: its value and what it is made of, its hypersurface, the class scores. */

import {gradient, largest} from "./colours.js";
import {npy, png, save} from "./files.js";
import {change} from "./image_view.js";
import {channel, draw_signed, frame} from "./pictures.js";
import {USUAL} from "./state.js";
import {in_words} from "./units.js";
import {as_terms, bar, colour_scale, number, percent, row, signed, whole} from "./words.js";

const SHOWN = 10;  // class scores, the highest
const BUTTONS = ["at-images", "explain", "png", "json", "npy", "check-layer"];  // that need a unit

export class UnitView {
  constructor(explorer) {
    this.explorer = explorer;
    this.parts = explorer.parts;
  }

  listen() {
    const {parts, explorer} = this;
    parts.k.addEventListener("input", () => explorer.update({k: 2 ** Number(parts.k.value)}, {gently: true}));
    parts.show.addEventListener("change", () => {
      explorer.state.show = parts.show.value;
      explorer.write_address();
      this.show_unit();
    });
    parts.dots.addEventListener("change", () => this.show_unit());
    parts.dots.checked = matchMedia("(prefers-contrast: more)").matches;
    parts.explain.addEventListener("click", () => this.explain(parts.why.value, parts.against.value));
    parts.png.addEventListener("click", () => this.save_png());
    parts.json.addEventListener("click", () => this.save_json());
    parts.npy.addEventListener("click", () => this.save_npy());
    parts["check-layer"].addEventListener("click", () => this.check_layer());
  }

  explain(why, against) {
    const layer = this.explorer.scores_layer;
    this.explorer.update({layer: layer.name, mode: "RM0", unit: why, against: against === why ? "" : against});
  }

  // ---------------------------------------------------------------- showing

  show_maps() {
    const {explorer, parts} = this, layer = explorer.scores_layer;
    parts["scores-row"].hidden = !layer;
    if (!layer) return;
    const scores = explorer.maps.values[layer.name], names = explorer.classes(layer.shape[0]);
    const name = (n) => names?.[n] ?? `class ${n}`;
    const {state} = explorer, at_scores = state.layer === layer.name;
    const order = Array.from(scores.keys()).sort((a, b) => scores[b] - scores[a]);
    const chosen = at_scores ? [state.unit, state.against].filter(Boolean).map(Number) : [];
    const about = explorer.config.datasets.find(({key}) => key === state.data);
    const label = state.image === "own" ? undefined : about.labels?.[Number(state.image)];
    const wanted = [...order.slice(0, SHOWN), ...chosen, ...(label < scores.length ? [label] : [])];
    const shown = [...new Set(wanted)].sort((a, b) => scores[b] - scores[a]);
    const low = Math.min(0, ...shown.map((n) => scores[n])), high = Math.max(0, ...shown.map((n) => scores[n]));
    parts.scores.replaceChildren(...shown.map((n) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = name(n);
      button.title = `Show why the score of ${name(n)} is what it is`;
      button.addEventListener("click", () => this.explain(String(n), ""));
      const line = row(button, bar(0, scores[n], low, high), number(scores[n], 4));
      if (n === label) button.after(" ✓");
      line.className = chosen.includes(n) ? "now" : "";
      return line;
    }));
    const rest = scores.length - shown.length;
    parts["scores-text"].textContent =
      `Before ${layer.bias ? "its bias and " : ""}any last activation.` +
      (label === undefined ? "" : " ✓ marks the image's label.") + (rest > 0 ? ` ${rest} lower scores are not shown.` : "");
    if (this.named !== names || parts.why.options.length !== scores.length) {
      this.named = names;
      const options = () => Array.from(scores.keys(), (n) => new Option(name(n), n));
      parts.why.replaceChildren(...options());
      parts.against.replaceChildren(new Option("nothing", ""), ...options());
      this.scores_of = null;
    }
    if (at_scores) [parts.why.value, parts.against.value] = [state.unit, state.against];
    else if (this.scores_of !== explorer.maps_of) [parts.why.value, parts.against.value] = [order[0], order[1]];
    this.scores_of = explorer.maps_of;
  }

  show_unit() {
    const {explorer: {unit}, parts} = this;
    if (!unit) return;
    for (const button of BUTTONS) parts[button].disabled = false;
    this.show_sum();
    this.show_pictures();
    this.show_parts();
    this.show_k();
    this.explorer.show("pixel");
  }

  get digits() {
    return this.explorer.state.dtype === "float64" ? 16 : 7;
  }

  /** The unit by name, as ĉ: a layer's unit, or the difference of two. */
  get name() {
    const {explorer} = this, {state, layer, index} = explorer, names = explorer.classes(layer.shape[0]);
    const said = (at) => in_words(layer, state.mode, at, names);
    const other = state.against === "" ? "" : ` − ${said([Number(state.against)])}`;
    return `${state.layer}, ${state.mode}, ${said(index)}${other}`;
  }

  show_sum() {
    const {parts, explorer} = this, {unit} = explorer, {image} = unit.contributions;
    const bold = document.createElement("b");
    bold.textContent = `${number(unit.value, this.digits)} = ĉ`;
    const below = (text) => Object.assign(document.createElement("sub"), {textContent: text});
    const biases = unit.value - image, terms = as_terms([image, biases]);
    parts.sum.replaceChildren(
      "⟨x | H", below("I"), "⟩ + ⟨x", below("b"), " | H", below("b"), `⟩ = ${terms} = `, bold);
    const off = Math.abs(unit.value - unit.network_value), within = off <= unit.bound * unit.roundoff * unit.scale;
    const relative = unit.network_value ? (unit.value - unit.network_value) / unit.network_value : off;
    parts.check.classList.toggle("bad", !within);
    parts.check.textContent =
      `${this.name}. The network computes c = ${number(unit.network_value, this.digits)}; ` +
      `ε = (ĉ − c) / c = ${number(relative, 2)}.`;
    const share = unit.scale ? off / (unit.roundoff * unit.scale) : 0;
    parts.bound.textContent =
      `|ĉ − c| = ${number(share, 2)} u A, ${within ? "within" : "beyond"} the bound of ${whole(Math.round(unit.bound))} u A. ` +
      "u is the unit roundoff, A what the same sum is without its signs.";
  }

  show_pictures() {
    const {parts, explorer} = this, {unit, image, state, table} = explorer;
    const {rows, columns, channels} = frame(explorer.net.input_shape);
    const names = channels === 3 ? ["red", "green", "blue"] : Array.from({length: channels}, (_, c) => `channel ${c}`);
    parts["show-row"].hidden = channels === 1;
    if (parts.show.options.length !== channels + 1)
      parts.show.replaceChildren(new Option("added", "sum"), ...names.map((name, c) => new Option(name, String(c))));
    if (state.show !== "sum" && !(Number(state.show) < channels)) state.show = "sum";
    parts.show.value = state.show;
    const product = Float64Array.from(unit.image, (h, at) => h * image[at]);
    const H = channel(unit.image, channels, state.show), given = channel(product, channels, state.show);
    this.scale = largest(H, given);
    const how = {rows, columns, table, scale: this.scale, dots: parts.dots.checked};
    draw_signed(parts["h-canvas"], H, how);
    draw_signed(parts["p-canvas"], given, how);
    colour_scale(parts["h-scale"], gradient(explorer.theme), how.scale);
    for (const [name, what] of [["h", "H_I"], ["p", "x times H_I"]]) {
      parts[`${name}-canvas`].setAttribute("role", "img");
      parts[`${name}-canvas`].setAttribute("aria-label", `${what}, ${rows} × ${columns} pixels`);
    }
  }

  /** Each contribution as a bar that begins where the one before it ends. */
  show_parts() {
    const {parts, explorer} = this, {unit} = explorer, all = Object.entries(unit.contributions);
    const ends = [0];
    for (const [, given] of all) ends.push(ends[ends.length - 1] + given);
    const low = Math.min(...ends), high = Math.max(...ends);
    const called = (name) => (name === "image" ? "the image x" : name);
    const reach = all.findLastIndex(([, given]) => given !== 0) + 1, beyond = all.slice(reach).map(([name]) => name);
    const rows = all.slice(0, reach).map(([name, given], at) => row(called(name), bar(ends[at], ends[at + 1], low, high), signed(given, 4)));
    if (beyond.length) rows.push(row(beyond.length > 1 ? `${beyond[0]} … ${beyond.at(-1)}` : called(beyond[0]), null, "0"));
    parts.parts.replaceChildren(...rows);
    parts["parts-total"].replaceChildren(row("ĉ, their sum", bar(0, unit.value, low, high), signed(unit.value, 4)));
    const long = rows.length > 40, scroll = parts["parts-scroll"];
    scroll.className = long ? "scroll" : "";
    if (long) scroll.tabIndex = 0;
    else scroll.removeAttribute("tabindex");
  }

  show_k() {
    const {parts, explorer} = this, {k} = explorer.state;
    const said = k < 1 && Number.isInteger(1 / k) ? `1/${1 / k}` : number(k, 3);
    parts.k.value = Math.log2(k);
    parts.k.setAttribute("aria-valuetext", `k = ${said}`);
    parts["k-said"].textContent = `k = ${said}`;
  }

  show_comparison() {
    const {parts, explorer} = this, {k, light} = explorer.state, {unit, comparison} = explorer;
    const said = `⟨z | H⟩ = k ĉ = ${number(k * unit.value)}.`;
    if (!comparison || light !== 1) {
      parts["k-text"].textContent = `${said} H is that of the network at z.`;
      return;
    }
    const share = change(unit, comparison.usual);
    parts["k-text"].textContent = `${said} Against k = 1/8, H has changed by ${share ? percent(share) : "nothing, to the bit"}.`;
  }

  // ---------------------------------------------------------------- every unit of a layer

  async check_layer() {
    const {explorer, parts} = this, {state} = explorer;
    const text = parts["layer-check"], button = parts["check-layer"];
    if (this.checking) return this.checking.abort();
    const controller = (this.checking = new AbortController());
    button.textContent = "Stop checking";
    const asked = {network: explorer.sources.file_of(state.net, state.data), image: explorer.image, layer: state.layer, dtype: state.dtype, k: state.k};
    const on_progress = (share) => (text.textContent = `Checking every unit of ${asked.layer}: ${Math.round(100 * share)} %`);
    try {
      const found = await explorer.sources.engine.check(asked, {signal: controller.signal, on_progress});
      text.textContent =
        `${asked.layer} in ${asked.dtype}: ${whole(found.errors.length)} units, each by its own H. Largest |ĉ − c| is ` +
        `${number(found.largest, 3)} u A, ${found.largest <= found.bound ? "within" : "beyond"} the bound of ${whole(Math.round(found.bound))} u A.`;
    } catch (error) {
      text.textContent = controller.signal.aborted ? "Stopped." : error.message;
    } finally {
      this.checking = null;
      button.textContent = "Check every unit of this layer";
    }
  }

  // ---------------------------------------------------------------- files

  get file_name() {
    const {state} = this.explorer;
    return [state.net, state.data, state.layer, state.mode, state.unit.replaceAll(",", "-")].join("_").replaceAll(/[^\w.-]/g, "-");
  }

  async save_png() {
    const {parts, explorer} = this;
    const pictures = [["x", "x"], ["H_I", "h"], ["x · H_I", "p"]].map(([title, name]) => ({title, canvas: parts[`${name}-canvas`]}));
    const given = ["net", "data"].map((key) => parts[key].selectedOptions[0].textContent).join(", ");
    const lines = [`${given}, ${parts["image-name"].textContent}`, `${this.name}: ĉ = ${number(explorer.unit.value)}`];
    const colours = {table: explorer.table, ends: [number(-this.scale, 3), number(this.scale, 3)]};
    save(await png(pictures, lines, colours), `${this.file_name}.png`);
  }

  save_json() {
    const {unit, net, state, image} = this.explorer;
    const found = {
      ...state, image_number: state.image, digest: net.digest, value: unit.value, network_value: unit.network_value, contributions: unit.contributions,
      scale: unit.scale, bound: unit.bound, receptive_field: unit.receptive_field, way_back: unit.way_back,
      x: Array.from(image), image: Array.from(unit.image), bias: Array.from(unit.bias), image_shape: net.input_shape,
    };
    save(new Blob([JSON.stringify(found)], {type: "application/json"}), `${this.file_name}.json`);
  }

  save_npy() {
    const {unit} = this.explorer, H = new unit.image.constructor(unit.image.length + unit.bias.length);
    H.set(unit.image);
    H.set(unit.bias, unit.image.length);
    save(npy(H, [H.length]), `${this.file_name}.npy`);
  }
}
