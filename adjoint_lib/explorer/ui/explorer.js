// @ts-check
/** One explorer on a page: its state, what is computed for it, and the views that show it. */

import {ImageView} from "./image_view.js";
import {MapsView} from "./maps_view.js";
import {UnitView} from "./unit_view.js";
import {WayView} from "./way_view.js";
import {ramp} from "./colours.js";
import {USUAL, is_state, read, written} from "./state.js";
import {index_of, moved, in_words} from "./units.js";
import {number} from "./words.js";

export class Explorer {
  /**
   * @param {HTMLElement} host its attribute `data-address` is "here" if the page's address is to follow,
   *     else the page that a link to the state leads to; `data-shown` is the state that is shown, once it is
   * @param {import("./sources.js").Sources} sources
   * @param {{html: string, css: string}} looks
   * @param {Object} start the state at first
   */
  constructor(host, sources, looks, start) {
    this.host = host;
    this.sources = sources;
    this.config = sources.config;
    /** @type {any} as an address says it, see `state.js` */
    this.state = {...USUAL, ...start};
    /** @type {any} the network's description */
    this.net = null;
    /** @type {import("./images.js").Samples | null} */
    this.samples = null;
    this.own = null;  // the reader's picture, as bytes
    this.own_number = 0;  // how many pictures the reader has given
    this.pixel = null;  // [row, column] that is pointed at
    this.root = host.attachShadow({mode: "open"});
    this.root.innerHTML = `<style>${looks.css}</style>${looks.html}`;
    /** @type {Record<string, any>} by their attribute `data-part` */
    this.parts = {};
    for (const part of this.root.querySelectorAll("[data-part]")) this.parts[part.getAttribute("data-part")] = part;
    this.follow_theme();
    this.views = [new ImageView(this), new MapsView(this), new UnitView(this), new WayView(this)];
    this.fill_choices();
    this.listen();
  }

  /** Compute the first picture, and follow the page's address from then on. */
  begin() {
    if (this.follows_address) {
      if (is_state(location.hash)) Object.assign(this.state, read(location.hash));
      addEventListener("hashchange", () => {
        if (!is_state(location.hash) || location.hash.slice(1) === this.address) return;
        this.host.scrollIntoView();  // the link may be far below
        this.update({...USUAL, ...this.config.start, unit: undefined, ...read(location.hash)});
      });
    }
    return this.update({});
  }

  get follows_address() {
    return this.host.dataset.address === "here" && location.protocol !== "about:";
  }

  // ---------------------------------------------------------------- the state

  /**
   * Change the state and show what it is then.
   *
   * A click ends what is being computed. What comes in quick succession, from a slider or the brush,
   * lets it end by itself, so that pictures keep coming; the last change is always shown.
   * @param {Object} change @param {{gently?: boolean}} how
   */
  async update(change, {gently = false} = {}) {
    Object.assign(this.state, change);
    this.waiting = true;
    if (this.running && gently) return this.running;
    this.controller?.abort();
    const controller = (this.controller = new AbortController());
    this.host.setAttribute("aria-busy", "true");
    this.running = this.compute_all(controller.signal);
    return this.running;
  }

  async compute_all(signal) {
    try {
      while (this.waiting && !signal.aborted) {
        this.waiting = false;
        await this.compute(signal);
      }
    } catch (error) {
      if (!signal.aborted) this.fail(error);
    } finally {
      if (!signal.aborted) {
        this.running = null;
        this.busy(false);
        this.host.setAttribute("aria-busy", "false");
      }
    }
  }

  async compute(signal) {
    this.parts.failure.hidden = true;
    this.busy(true, signal);
    const state = this.settle_names();
    const [net, samples] = await Promise.all([
      this.sources.network(state.net, state.data),
      this.sources.samples(state.data),
    ]);
    if (signal.aborted) return;
    [this.net, this.samples] = [net, samples];
    this.settle();
    this.image = await this.sources.image(state, this.own);
    const asked = {network: this.sources.file_of(state.net, state.data), image: this.image, dtype: state.dtype};
    const options = {signal, on_progress: (share) => this.progress(share)};
    this.show("image");
    const key = this.key(["net", "data", "image", "paint", "own", "light", "dtype"]);
    if (this.maps_of !== key) {
      const relus = net.nodes.filter(({kind}) => kind === "Activation").map(({inputs}) => inputs[0]);
      this.maps = await this.sources.engine.value({...asked, k: 1, nodes: state.light === 1 ? [] : relus}, options);
      if (signal.aborted) return;
      this.maps_of = key;
    }
    if (state.unit === undefined) this.choose_unit();
    this.write_address();
    this.show("choices");
    this.show("maps");
    const shown = written(state);
    this.unit = await this.sources.engine.unit({...asked, ...this.asked_unit(), k: state.k}, options);
    if (signal.aborted) return;
    this.show("unit");
    await this.compare(asked, options);
    if (signal.aborted) return;
    this.show("comparison");
    this.host.dataset.shown = shown;
    this.announce();
  }

  /** What the unit and the ReLUs are at full light and the usual k, once one of them is not so. */
  async compare(asked, options) {
    const {light, k} = this.state;
    this.comparison = null;
    if (light === 1 && k === USUAL.k) return;
    const image = await this.sources.image({...this.state, light: 1}, this.own);
    const key = this.key(["net", "data", "image", "paint", "own", "dtype", "layer", "mode", "unit", "against"]);
    if (this.usual_of !== key) {
      this.usual = await this.sources.engine.unit({...asked, image, ...this.asked_unit(), k: USUAL.k}, options);
      this.usual_of = key;
    }
    this.comparison = {usual: this.usual};
    if (light === 1) return;
    const numbers = this.net.nodes.filter(({kind}) => kind === "Activation").map(({inputs}) => inputs[0]);
    const image_key = this.key(["net", "data", "image", "paint", "own", "dtype"]);
    if (this.signs_of !== image_key) {
      this.signs = (await this.sources.engine.value({...asked, image, k: 1, nodes: numbers}, options)).nodes;
      this.signs_of = image_key;
    }
    const flips = new Map();  // of each ReLU's input
    for (const at of numbers) flips.set(at, this.maps.nodes[at].map((now, n) => Number(now > 0 !== this.signs[at][n] > 0)));
    const all = [...flips.values()].reduce((sum, {length}) => sum + length, 0);
    const flipped = [...flips.values()].reduce((sum, some) => sum + some.reduce((a, b) => a + b, 0), 0);
    Object.assign(this.comparison, {flips: flips.get(read_by_relu(this.net, this.layer)), flipped, all});
  }

  /** The unit that the state names, as the engine is asked for it. */
  asked_unit() {
    const {layer, mode, unit, against} = this.state;
    const index = unit.split(",").map(Number);
    return {layer, mode, index, ...(against === "" ? {} : {against: against.split(",").map(Number)})};
  }

  /** Names that are there. */
  settle_names() {
    const {state, config} = this;
    const known = (list, key) => (list.some((one) => one.key === key) ? key : list[0].key);
    state.net = known(config.networks, state.net);
    state.data = known(config.datasets, state.data);
    return state;
  }

  /** A layer, a mode and an index that fit the network, an image that is there. */
  settle() {
    const {state, net} = this;
    const maps = net.layers.filter(({shape}) => shape.length > 1);
    const layer = this.layer ?? (maps.length ? maps : net.layers).at(-1);
    if (layer.name !== state.layer) state.unit = undefined;
    state.layer = layer.name;
    if (!layer.modes.includes(state.mode)) state.mode = layer.default_mode;
    if (state.unit !== undefined) state.unit = index_of(state.unit, layer, state.mode).join(",");
    if (layer.shape.length > 1 || state.against === state.unit) state.against = "";
    if (state.unit === undefined) state.against = "";
    if (state.against !== "") state.against = index_of(state.against, layer, state.mode).join(",");
    if (state.image !== "own") state.image = String(Math.max(0, Math.min(this.samples.count - 1, parseInt(state.image, 10) || 0)));
    else if (!state.own && this.own?.length !== this.samples.size) state.image = "0";
  }

  /** Where no unit was asked for: the one with the largest value. */
  choose_unit() {
    const {layer, state} = this, values = this.maps.values[layer.name];
    let at = values.indexOf(values.reduce((a, b) => Math.max(a, b)));
    const place = layer.shape.map(() => 0);
    for (let axis = place.length - 1; axis >= 0; axis--) {
      place[axis] = at % layer.shape[axis];
      at = Math.floor(at / layer.shape[axis]);
    }
    const mode = layer.default_mode;
    state.unit = moved(place, layer, mode, layer, state.mode).join(",");
  }

  get layer() {
    return this.net?.layers.find(({name}) => name === this.state.layer);
  }

  get index() {
    return this.state.unit.split(",").map(Number);
  }

  /** The data set's names of classes, if they fit a layer of this many units. */
  classes(size) {
    const {classes} = this.config.datasets.find(({key}) => key === this.state.data);
    return classes?.length === size ? classes : null;
  }

  /** The layer of the class scores: the last one, if its units have no positions. */
  get scores_layer() {
    const last = this.net.layers[this.net.layers.length - 1];
    return last.shape.length === 1 && last.shape[0] > 1 ? last : null;
  }

  /** Another layer or mode, at the place nearest to the unit of now. */
  move({layer = this.state.layer, mode}) {
    const old = this.layer, next = this.net.layers.find(({name}) => name === layer);
    const chosen = next.modes.includes(mode ?? this.state.mode) ? mode ?? this.state.mode : next.default_mode;
    const unit = moved(this.index, old, this.state.mode, next, chosen).join(",");
    this.update({layer, mode: chosen, unit, against: ""});
  }

  key(names) {
    return names.map((name) => this.state[name]).join("|") + (this.state.image === "own" && !this.state.own ? this.own_number : "");
  }

  // ---------------------------------------------------------------- the page

  fill_choices() {
    const {parts, config} = this;
    const fill = (select, list) => select.replaceChildren(...list.map(({key, name}) => new Option(name, key)));
    fill(parts.net, config.networks);
    fill(parts.data, config.datasets);
    parts["net-row"].hidden = config.networks.length < 2;
    parts["data-row"].hidden = config.datasets.length < 2;
  }

  listen() {
    const {parts} = this;
    parts.net.addEventListener("change", () => this.update({net: parts.net.value, against: ""}));
    parts.data.addEventListener("change", () => this.update({data: parts.data.value, image: "0", paint: "", against: ""}));
    parts.dtype.addEventListener("change", () => this.update({dtype: parts.dtype.value}));
    for (const view of this.views) view.listen();
  }

  show(what) {
    if (what === "choices") for (const key of ["net", "data", "dtype"]) this.parts[key].value = this.state[key];
    for (const view of this.views) view[`show_${what}`]?.();
  }

  /** The pixel that the reader points at, or none. */
  point(pixel) {
    this.pixel = pixel;
    this.show("pixel");
  }

  busy(whether, signal) {
    clearTimeout(this.slow);
    if (!whether) this.parts.progress.classList.remove("busy");
    else this.slow = setTimeout(() => signal.aborted || this.parts.progress.classList.add("busy"), 200);
  }

  progress(share) {
    this.parts.progress.firstElementChild.style.width = `${100 * share}%`;
  }

  fail(error) {
    this.parts.failure.textContent = error.message;
    this.parts.failure.hidden = false;
    if (!this.unit) this.parts.sum.textContent = "Nothing could be computed.";
  }

  write_address() {
    this.address = written(this.state);
    const {address} = this.host.dataset;
    if (this.follows_address) {
      clearTimeout(this.writing);
      this.writing = setTimeout(() => history.replaceState(history.state, "", `#${this.address}`), 150);
    } else if (address && address !== "here") {  // to a notebook's frame, no address leads
      this.parts.address.href = `${address}#${this.address}`;
      this.parts.address.hidden = false;
    }
  }

  /** Say to those who cannot see what the others see. */
  announce() {
    const {layer, state, unit, index} = this;
    const image = unit.contributions.image, off = Math.abs(unit.value - unit.network_value);
    const well = off <= unit.bound * unit.roundoff * unit.scale;
    clearTimeout(this.saying);
    this.saying = setTimeout(() => {
      this.parts.said.textContent =
        `${state.layer}, ${state.mode}, ${in_words(layer, state.mode, index, this.classes(layer.shape[0]))}: ` +
        `value ${number(unit.value)}, of which the image gives ${number(image)} and the biases ` +
        `${number(unit.value - image)}. The network computes ${number(unit.network_value)}: ` +
        (well ? "equal up to rounding." : "not equal!");
    }, 500);
  }

  // ---------------------------------------------------------------- light and dark

  follow_theme() {
    const page = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)");
    const follow = () => {
      const said = page.dataset.theme, theme = said === "light" || said === "dark" ? said : dark.matches ? "dark" : "light";
      if (theme === this.theme) return;
      this.theme = theme;
      this.table = ramp(theme);
      this.host.classList.toggle("dark", theme === "dark");
      for (const what of this.unit ? ["image", "maps", "unit", "comparison"] : []) this.show(what);
    };
    new MutationObserver(follow).observe(page, {attributeFilter: ["data-theme"]});
    dark.addEventListener("change", follow);
    follow();
  }
}

/** The node through which a layer's maps reach a ReLU: c itself, or c with its bias or a shortcut added. */
function read_by_relu({nodes}, layer) {
  let at = layer.number;
  for (const {number, inputs, kind, shape} of nodes) {
    if (!inputs.includes(at)) continue;
    if (kind === "Activation") return at;
    if (String(shape) !== String(layer.shape)) return null;
    at = number;
  }
  return null;
}
