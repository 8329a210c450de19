// @ts-check
/** SHA-256, as FIPS 180-4 writes it: not every browser gives a page from a file `crypto.subtle`. */

/** The first primes: the constants are digits of their roots. */
const PRIMES = Array.from({ length: 310 }, (_, n) => n + 2)
  .filter((n, _, all) => !all.some((d) => d * d <= n && n % d === 0));

/** The first 32 bits of a number's fraction. @param {number} number */
function fraction_of(number) {
  return ((number - Math.floor(number)) * 2 ** 32) | 0;
}

/** The digest of these bytes, in hexadecimal. @param {Uint8Array} bytes */
export function sha256(bytes) {
  const K = Int32Array.from(PRIMES.slice(0, 64), (p) => fraction_of(Math.cbrt(p)));
  const H = Int32Array.from(PRIMES.slice(0, 8), (p) => fraction_of(Math.sqrt(p)));
  const padded = new Uint8Array(64 * Math.ceil((bytes.length + 9) / 64));
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setBigUint64(padded.length - 8, BigInt(8 * bytes.length));
  const w = new Int32Array(64);
  for (let block = 0; block < padded.length; block += 64) {
    for (let t = 0; t < 16; t++) w[t] = view.getInt32(block + 4 * t);
    for (let t = 16; t < 64; t++) {
      const x = w[t - 15], y = w[t - 2];
      const s0 = turn(x, 7) ^ turn(x, 18) ^ (x >>> 3), s1 = turn(y, 17) ^ turn(y, 19) ^ (y >>> 10);
      w[t] = w[t - 16] + s0 + w[t - 7] + s1;
    }
    let [a, b, c, d, e, f, g, h] = H;
    for (let t = 0; t < 64; t++) {
      const s1 = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25), choice = (e & f) ^ (~e & g);
      const one = (h + s1 + choice + K[t] + w[t]) | 0;
      const s0 = turn(a, 2) ^ turn(a, 13) ^ turn(a, 22), majority = (a & b) ^ (a & c) ^ (b & c);
      const two = (s0 + majority) | 0;
      h = g; g = f; f = e; e = (d + one) | 0;
      d = c; c = b; b = a; a = (one + two) | 0;
    }
    [a, b, c, d, e, f, g, h].forEach((word, n) => (H[n] += word));
  }
  return Array.from(H, (word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
}

/** A word turned to the right. @param {number} word @param {number} by */
function turn(word, by) {
  return (word >>> by) | (word << (32 - by));
}
