// @ts-check
/**
 * The page's data: long texts in scripts, since a page opened from a file can load nothing else.
 *
 * A text stands in the page itself, or in a script of its own that puts it into `adjoint_data`;
 * such a script is loaded when the text is first wanted.
 */

/** @type {Map<string, Promise<string>>} */
const wanted = new Map();

/** The text of this name. @param {string} name @param {string} folder where the scripts are */
export function text_of(name, folder) {
  if (!wanted.has(name)) wanted.set(name, find(name, folder));
  return wanted.get(name);
}

async function find(name, folder) {
  const inside = document.querySelector(`script[data-adjoint="${CSS.escape(name)}"]`);
  if (inside) return inside.textContent.trim();
  await new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = `${folder}${name}.js`;
    script.onload = resolve;
    script.onerror = () => {
      wanted.delete(name);
      reject(new Error(`expected the file ${name}.js beside the book's scripts, found none. Build the book again.`));
    };
    document.head.append(script);
  });
  return /** @type {any} */ (window).adjoint_data[name];
}

/** The bytes of a text in base64. @returns {Uint8Array} */
export function bytes_of(text) {
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let at = 0; at < letters.length; at++) bytes[at] = letters.charCodeAt(at);
  return bytes;
}

/** Bytes as a text that may stand in an address. */
export const address_of = (bytes) =>
  btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");

/** The bytes of such a text. */
export const bytes_of_address = (text) => bytes_of(text.replaceAll("-", "+").replaceAll("_", "/"));
