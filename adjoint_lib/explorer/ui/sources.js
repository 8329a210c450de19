// @ts-check
/** What the explorers of a page share: networks, images, and one engine that computes. */

import {text_of} from "./data.js";
import {image_of, Samples} from "./images.js";

export class Sources {
  constructor(config, engine, folder) {
    this.config = config;
    this.folder = folder;
    this.make = () => {
      const adjoint = engine();
      return new adjoint.Engine(engine);
    };
    /** @type {any} */
    this.running = null;
    this.networks = new Map();
    this.sets = new Map();
  }

  /** The engine, made when it is first wanted. */
  get engine() {
    return (this.running ??= this.make());
  }

  /** The name of the file with the network as trained on a data set. */
  file_of(net, data) {
    const exports = this.config.networks.find(({key}) => key === net).exports;
    return exports[data] ?? Object.values(exports)[0];
  }

  /** What is known of a network, once its numbers are there. */
  network(net, data) {
    const file = this.file_of(net, data);
    return once(this.networks, file, async () => {
      const text = await text_of(file, this.folder);
      return this.engine.load(file, text).catch((error) => {
        throw new Error(`The numbers of ${net} in this page cannot be read: ${error.message}`);
      });
    });
  }

  /** The samples of a data set. @returns {Promise<Samples>} */
  samples(data) {
    const about = this.config.datasets.find(({key}) => key === data);
    return once(this.sets, data, async () => new Samples(await text_of(about.file, this.folder), about));
  }

  /**
   * The numbers of one unit, for programs; `image` is the number of an embedded sample.
   * @param {{network?: string, dataset?: string, image?: number, layer?: string, mode?: string,
   *     index?: number[], dtype?: string, k?: number}} what
   * @returns {Promise<{value: number, network_value: number, image: number[], bias: number[],
   *     contributions: Object<string, number>}>}
   */
  async unit({network, dataset, image = 0, layer, mode, index, dtype = "float32", k = 1 / 8, ...more} = {}) {
    const known = (list, key, what) => {
      const keys = list.map((one) => one.key), chosen = key ?? keys[0];
      if (!keys.includes(chosen)) throw new Error(`expected ${what} as one of ${keys.join(", ")}; got ${JSON.stringify(chosen)}.`);
      return chosen;
    };
    const [unknown] = Object.keys(more);
    if (unknown !== undefined)
      throw new Error(`expected network, dataset, image, layer, mode, index, dtype and k; got ${unknown} too.`);
    network = known(this.config.networks, network, "network");
    dataset = known(this.config.datasets, dataset, "dataset");
    const [net, samples] = await Promise.all([this.network(network, dataset), this.samples(dataset)]);
    if (!Number.isInteger(image) || image < 0 || image >= samples.count)
      throw new Error(`expected image as a whole number from 0 to ${samples.count - 1}; got ${JSON.stringify(image)}.`);
    layer ??= net.layers[net.layers.length - 1].name;
    const x = samples.image(image);
    const asked = {network: this.file_of(network, dataset), image: x, layer, mode, index, dtype, k};
    const found = await this.engine.unit(asked);
    return {...found, image: Array.from(found.image), bias: Array.from(found.bias)};
  }

  /** The image of a state. */
  async image(state, own) {
    const [net, samples] = await Promise.all([this.network(state.net, state.data), this.samples(state.data)]);
    return image_of(state, samples, net.input_shape, own);
  }
}

function once(map, key, make) {
  if (!map.has(key)) {
    const made = make();
    map.set(key, made);
    made.catch(() => map.delete(key));
  }
  return map.get(key);
}
