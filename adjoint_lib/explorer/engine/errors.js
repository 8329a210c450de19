// @ts-check
/** The errors of the engine: what was expected, what came. */

/** Something asked for does not fit the network. */
export class InputError extends Error {
  name = "InputError";
}

/** A file is damaged, or something else than an exported network. */
export class DataError extends Error {
  name = "DataError";
}
