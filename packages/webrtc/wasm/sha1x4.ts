/*
 * The SHA-1 compression function (FIPS 180-4 section 6.1.2) on four messages at once, one per 32-bit lane.
 *
 * Written out in full: the five state words then change names instead of places, the sixteen schedule words stay in
 * registers, and the schedule of later rounds runs beside the arithmetic of earlier ones. As loops it takes nearly
 * twice as long.
 */

/** `state`: 5 vectors, changed only in the lanes of `mask`. `words`: 16 vectors, one block of each message. */
export function compress(state: usize, words: usize, mask: v128): void {
  let w0 = v128.load(words, 0);
  let w1 = v128.load(words, 16);
  let w2 = v128.load(words, 32);
  let w3 = v128.load(words, 48);
  let w4 = v128.load(words, 64);
  let w5 = v128.load(words, 80);
  let w6 = v128.load(words, 96);
  let w7 = v128.load(words, 112);
  let w8 = v128.load(words, 128);
  let w9 = v128.load(words, 144);
  let w10 = v128.load(words, 160);
  let w11 = v128.load(words, 176);
  let w12 = v128.load(words, 192);
  let w13 = v128.load(words, 208);
  let w14 = v128.load(words, 224);
  let w15 = v128.load(words, 240);
  const a0 = v128.load(state);
  const b0 = v128.load(state, 16);
  const c0 = v128.load(state, 32);
  const d0 = v128.load(state, 48);
  const e0 = v128.load(state, 64);
  let a = a0;
  let b = b0;
  let c = c0;
  let d = d0;
  let e = e0;
  let k: v128;

  k = i32x4.splat(0x5a827999);
  e = i32x4.add(i32x4.add(i32x4.add(e, k), w0), i32x4.add(choose(b, c, d), rotate(a, 5)));
  b = rotate(b, 30);
  d = i32x4.add(i32x4.add(i32x4.add(d, k), w1), i32x4.add(choose(a, b, c), rotate(e, 5)));
  a = rotate(a, 30);
  c = i32x4.add(i32x4.add(i32x4.add(c, k), w2), i32x4.add(choose(e, a, b), rotate(d, 5)));
  e = rotate(e, 30);
  b = i32x4.add(i32x4.add(i32x4.add(b, k), w3), i32x4.add(choose(d, e, a), rotate(c, 5)));
  d = rotate(d, 30);
  a = i32x4.add(i32x4.add(i32x4.add(a, k), w4), i32x4.add(choose(c, d, e), rotate(b, 5)));
  c = rotate(c, 30);
  e = i32x4.add(i32x4.add(i32x4.add(e, k), w5), i32x4.add(choose(b, c, d), rotate(a, 5)));
  b = rotate(b, 30);
  d = i32x4.add(i32x4.add(i32x4.add(d, k), w6), i32x4.add(choose(a, b, c), rotate(e, 5)));
  a = rotate(a, 30);
  c = i32x4.add(i32x4.add(i32x4.add(c, k), w7), i32x4.add(choose(e, a, b), rotate(d, 5)));
  e = rotate(e, 30);
  b = i32x4.add(i32x4.add(i32x4.add(b, k), w8), i32x4.add(choose(d, e, a), rotate(c, 5)));
  d = rotate(d, 30);
  a = i32x4.add(i32x4.add(i32x4.add(a, k), w9), i32x4.add(choose(c, d, e), rotate(b, 5)));
  c = rotate(c, 30);
  e = i32x4.add(i32x4.add(i32x4.add(e, k), w10), i32x4.add(choose(b, c, d), rotate(a, 5)));
  b = rotate(b, 30);
  d = i32x4.add(i32x4.add(i32x4.add(d, k), w11), i32x4.add(choose(a, b, c), rotate(e, 5)));
  a = rotate(a, 30);
  c = i32x4.add(i32x4.add(i32x4.add(c, k), w12), i32x4.add(choose(e, a, b), rotate(d, 5)));
  e = rotate(e, 30);
  b = i32x4.add(i32x4.add(i32x4.add(b, k), w13), i32x4.add(choose(d, e, a), rotate(c, 5)));
  d = rotate(d, 30);
  a = i32x4.add(i32x4.add(i32x4.add(a, k), w14), i32x4.add(choose(c, d, e), rotate(b, 5)));
  c = rotate(c, 30);
  e = i32x4.add(i32x4.add(i32x4.add(e, k), w15), i32x4.add(choose(b, c, d), rotate(a, 5)));
  b = rotate(b, 30);
  w0 = rotate(v128.xor(v128.xor(w13, w8), v128.xor(w2, w0)), 1);
  d = i32x4.add(i32x4.add(i32x4.add(d, k), w0), i32x4.add(choose(a, b, c), rotate(e, 5)));
  a = rotate(a, 30);
  w1 = rotate(v128.xor(v128.xor(w14, w9), v128.xor(w3, w1)), 1);
  c = i32x4.add(i32x4.add(i32x4.add(c, k), w1), i32x4.add(choose(e, a, b), rotate(d, 5)));
  e = rotate(e, 30);
  w2 = rotate(v128.xor(v128.xor(w15, w10), v128.xor(w4, w2)), 1);
  b = i32x4.add(i32x4.add(i32x4.add(b, k), w2), i32x4.add(choose(d, e, a), rotate(c, 5)));
  d = rotate(d, 30);
  w3 = rotate(v128.xor(v128.xor(w0, w11), v128.xor(w5, w3)), 1);
  a = i32x4.add(i32x4.add(i32x4.add(a, k), w3), i32x4.add(choose(c, d, e), rotate(b, 5)));
  c = rotate(c, 30);

  k = i32x4.splat(0x6ed9eba1);
  w4 = rotate(v128.xor(v128.xor(w1, w12), v128.xor(w6, w4)), 1);
  e = i32x4.add(i32x4.add(i32x4.add(e, k), w4), i32x4.add(parity(b, c, d), rotate(a, 5)));
  b = rotate(b, 30);
  w5 = rotate(v128.xor(v128.xor(w2, w13), v128.xor(w7, w5)), 1);
  d = i32x4.add(i32x4.add(i32x4.add(d, k), w5), i32x4.add(parity(a, b, c), rotate(e, 5)));
  a = rotate(a, 30);
  w6 = rotate(v128.xor(v128.xor(w3, w14), v128.xor(w8, w6)), 1);
  c = i32x4.add(i32x4.add(i32x4.add(c, k), w6), i32x4.add(parity(e, a, b), rotate(d, 5)));
  e = rotate(e, 30);
  w7 = rotate(v128.xor(v128.xor(w4, w15), v128.xor(w9, w7)), 1);
  b = i32x4.add(i32x4.add(i32x4.add(b, k), w7), i32x4.add(parity(d, e, a), rotate(c, 5)));
  d = rotate(d, 30);
  w8 = rotate(v128.xor(v128.xor(w5, w0), v128.xor(w10, w8)), 1);
  a = i32x4.add(i32x4.add(i32x4.add(a, k), w8), i32x4.add(parity(c, d, e), rotate(b, 5)));
  c = rotate(c, 30);
  w9 = rotate(v128.xor(v128.xor(w6, w1), v128.xor(w11, w9)), 1);
  e = i32x4.add(i32x4.add(i32x4.add(e, k), w9), i32x4.add(parity(b, c, d), rotate(a, 5)));
  b = rotate(b, 30);
  w10 = rotate(v128.xor(v128.xor(w7, w2), v128.xor(w12, w10)), 1);
  d = i32x4.add(i32x4.add(i32x4.add(d, k), w10), i32x4.add(parity(a, b, c), rotate(e, 5)));
  a = rotate(a, 30);
  w11 = rotate(v128.xor(v128.xor(w8, w3), v128.xor(w13, w11)), 1);
  c = i32x4.add(i32x4.add(i32x4.add(c, k), w11), i32x4.add(parity(e, a, b), rotate(d, 5)));
  e = rotate(e, 30);
  w12 = rotate(v128.xor(v128.xor(w9, w4), v128.xor(w14, w12)), 1);
  b = i32x4.add(i32x4.add(i32x4.add(b, k), w12), i32x4.add(parity(d, e, a), rotate(c, 5)));
  d = rotate(d, 30);
  w13 = rotate(v128.xor(v128.xor(w10, w5), v128.xor(w15, w13)), 1);
  a = i32x4.add(i32x4.add(i32x4.add(a, k), w13), i32x4.add(parity(c, d, e), rotate(b, 5)));
  c = rotate(c, 30);
  w14 = rotate(v128.xor(v128.xor(w11, w6), v128.xor(w0, w14)), 1);
  e = i32x4.add(i32x4.add(i32x4.add(e, k), w14), i32x4.add(parity(b, c, d), rotate(a, 5)));
  b = rotate(b, 30);
  w15 = rotate(v128.xor(v128.xor(w12, w7), v128.xor(w1, w15)), 1);
  d = i32x4.add(i32x4.add(i32x4.add(d, k), w15), i32x4.add(parity(a, b, c), rotate(e, 5)));
  a = rotate(a, 30);
  w0 = rotate(v128.xor(v128.xor(w13, w8), v128.xor(w2, w0)), 1);
  c = i32x4.add(i32x4.add(i32x4.add(c, k), w0), i32x4.add(parity(e, a, b), rotate(d, 5)));
  e = rotate(e, 30);
  w1 = rotate(v128.xor(v128.xor(w14, w9), v128.xor(w3, w1)), 1);
  b = i32x4.add(i32x4.add(i32x4.add(b, k), w1), i32x4.add(parity(d, e, a), rotate(c, 5)));
  d = rotate(d, 30);
  w2 = rotate(v128.xor(v128.xor(w15, w10), v128.xor(w4, w2)), 1);
  a = i32x4.add(i32x4.add(i32x4.add(a, k), w2), i32x4.add(parity(c, d, e), rotate(b, 5)));
  c = rotate(c, 30);
  w3 = rotate(v128.xor(v128.xor(w0, w11), v128.xor(w5, w3)), 1);
  e = i32x4.add(i32x4.add(i32x4.add(e, k), w3), i32x4.add(parity(b, c, d), rotate(a, 5)));
  b = rotate(b, 30);
  w4 = rotate(v128.xor(v128.xor(w1, w12), v128.xor(w6, w4)), 1);
  d = i32x4.add(i32x4.add(i32x4.add(d, k), w4), i32x4.add(parity(a, b, c), rotate(e, 5)));
  a = rotate(a, 30);
  w5 = rotate(v128.xor(v128.xor(w2, w13), v128.xor(w7, w5)), 1);
  c = i32x4.add(i32x4.add(i32x4.add(c, k), w5), i32x4.add(parity(e, a, b), rotate(d, 5)));
  e = rotate(e, 30);
  w6 = rotate(v128.xor(v128.xor(w3, w14), v128.xor(w8, w6)), 1);
  b = i32x4.add(i32x4.add(i32x4.add(b, k), w6), i32x4.add(parity(d, e, a), rotate(c, 5)));
  d = rotate(d, 30);
  w7 = rotate(v128.xor(v128.xor(w4, w15), v128.xor(w9, w7)), 1);
  a = i32x4.add(i32x4.add(i32x4.add(a, k), w7), i32x4.add(parity(c, d, e), rotate(b, 5)));
  c = rotate(c, 30);

  k = i32x4.splat(0x8f1bbcdc);
  w8 = rotate(v128.xor(v128.xor(w5, w0), v128.xor(w10, w8)), 1);
  e = i32x4.add(i32x4.add(i32x4.add(e, k), w8), i32x4.add(majority(b, c, d), rotate(a, 5)));
  b = rotate(b, 30);
  w9 = rotate(v128.xor(v128.xor(w6, w1), v128.xor(w11, w9)), 1);
  d = i32x4.add(i32x4.add(i32x4.add(d, k), w9), i32x4.add(majority(a, b, c), rotate(e, 5)));
  a = rotate(a, 30);
  w10 = rotate(v128.xor(v128.xor(w7, w2), v128.xor(w12, w10)), 1);
  c = i32x4.add(i32x4.add(i32x4.add(c, k), w10), i32x4.add(majority(e, a, b), rotate(d, 5)));
  e = rotate(e, 30);
  w11 = rotate(v128.xor(v128.xor(w8, w3), v128.xor(w13, w11)), 1);
  b = i32x4.add(i32x4.add(i32x4.add(b, k), w11), i32x4.add(majority(d, e, a), rotate(c, 5)));
  d = rotate(d, 30);
  w12 = rotate(v128.xor(v128.xor(w9, w4), v128.xor(w14, w12)), 1);
  a = i32x4.add(i32x4.add(i32x4.add(a, k), w12), i32x4.add(majority(c, d, e), rotate(b, 5)));
  c = rotate(c, 30);
  w13 = rotate(v128.xor(v128.xor(w10, w5), v128.xor(w15, w13)), 1);
  e = i32x4.add(i32x4.add(i32x4.add(e, k), w13), i32x4.add(majority(b, c, d), rotate(a, 5)));
  b = rotate(b, 30);
  w14 = rotate(v128.xor(v128.xor(w11, w6), v128.xor(w0, w14)), 1);
  d = i32x4.add(i32x4.add(i32x4.add(d, k), w14), i32x4.add(majority(a, b, c), rotate(e, 5)));
  a = rotate(a, 30);
  w15 = rotate(v128.xor(v128.xor(w12, w7), v128.xor(w1, w15)), 1);
  c = i32x4.add(i32x4.add(i32x4.add(c, k), w15), i32x4.add(majority(e, a, b), rotate(d, 5)));
  e = rotate(e, 30);
  w0 = rotate(v128.xor(v128.xor(w13, w8), v128.xor(w2, w0)), 1);
  b = i32x4.add(i32x4.add(i32x4.add(b, k), w0), i32x4.add(majority(d, e, a), rotate(c, 5)));
  d = rotate(d, 30);
  w1 = rotate(v128.xor(v128.xor(w14, w9), v128.xor(w3, w1)), 1);
  a = i32x4.add(i32x4.add(i32x4.add(a, k), w1), i32x4.add(majority(c, d, e), rotate(b, 5)));
  c = rotate(c, 30);
  w2 = rotate(v128.xor(v128.xor(w15, w10), v128.xor(w4, w2)), 1);
  e = i32x4.add(i32x4.add(i32x4.add(e, k), w2), i32x4.add(majority(b, c, d), rotate(a, 5)));
  b = rotate(b, 30);
  w3 = rotate(v128.xor(v128.xor(w0, w11), v128.xor(w5, w3)), 1);
  d = i32x4.add(i32x4.add(i32x4.add(d, k), w3), i32x4.add(majority(a, b, c), rotate(e, 5)));
  a = rotate(a, 30);
  w4 = rotate(v128.xor(v128.xor(w1, w12), v128.xor(w6, w4)), 1);
  c = i32x4.add(i32x4.add(i32x4.add(c, k), w4), i32x4.add(majority(e, a, b), rotate(d, 5)));
  e = rotate(e, 30);
  w5 = rotate(v128.xor(v128.xor(w2, w13), v128.xor(w7, w5)), 1);
  b = i32x4.add(i32x4.add(i32x4.add(b, k), w5), i32x4.add(majority(d, e, a), rotate(c, 5)));
  d = rotate(d, 30);
  w6 = rotate(v128.xor(v128.xor(w3, w14), v128.xor(w8, w6)), 1);
  a = i32x4.add(i32x4.add(i32x4.add(a, k), w6), i32x4.add(majority(c, d, e), rotate(b, 5)));
  c = rotate(c, 30);
  w7 = rotate(v128.xor(v128.xor(w4, w15), v128.xor(w9, w7)), 1);
  e = i32x4.add(i32x4.add(i32x4.add(e, k), w7), i32x4.add(majority(b, c, d), rotate(a, 5)));
  b = rotate(b, 30);
  w8 = rotate(v128.xor(v128.xor(w5, w0), v128.xor(w10, w8)), 1);
  d = i32x4.add(i32x4.add(i32x4.add(d, k), w8), i32x4.add(majority(a, b, c), rotate(e, 5)));
  a = rotate(a, 30);
  w9 = rotate(v128.xor(v128.xor(w6, w1), v128.xor(w11, w9)), 1);
  c = i32x4.add(i32x4.add(i32x4.add(c, k), w9), i32x4.add(majority(e, a, b), rotate(d, 5)));
  e = rotate(e, 30);
  w10 = rotate(v128.xor(v128.xor(w7, w2), v128.xor(w12, w10)), 1);
  b = i32x4.add(i32x4.add(i32x4.add(b, k), w10), i32x4.add(majority(d, e, a), rotate(c, 5)));
  d = rotate(d, 30);
  w11 = rotate(v128.xor(v128.xor(w8, w3), v128.xor(w13, w11)), 1);
  a = i32x4.add(i32x4.add(i32x4.add(a, k), w11), i32x4.add(majority(c, d, e), rotate(b, 5)));
  c = rotate(c, 30);

  k = i32x4.splat(0xca62c1d6);
  w12 = rotate(v128.xor(v128.xor(w9, w4), v128.xor(w14, w12)), 1);
  e = i32x4.add(i32x4.add(i32x4.add(e, k), w12), i32x4.add(parity(b, c, d), rotate(a, 5)));
  b = rotate(b, 30);
  w13 = rotate(v128.xor(v128.xor(w10, w5), v128.xor(w15, w13)), 1);
  d = i32x4.add(i32x4.add(i32x4.add(d, k), w13), i32x4.add(parity(a, b, c), rotate(e, 5)));
  a = rotate(a, 30);
  w14 = rotate(v128.xor(v128.xor(w11, w6), v128.xor(w0, w14)), 1);
  c = i32x4.add(i32x4.add(i32x4.add(c, k), w14), i32x4.add(parity(e, a, b), rotate(d, 5)));
  e = rotate(e, 30);
  w15 = rotate(v128.xor(v128.xor(w12, w7), v128.xor(w1, w15)), 1);
  b = i32x4.add(i32x4.add(i32x4.add(b, k), w15), i32x4.add(parity(d, e, a), rotate(c, 5)));
  d = rotate(d, 30);
  w0 = rotate(v128.xor(v128.xor(w13, w8), v128.xor(w2, w0)), 1);
  a = i32x4.add(i32x4.add(i32x4.add(a, k), w0), i32x4.add(parity(c, d, e), rotate(b, 5)));
  c = rotate(c, 30);
  w1 = rotate(v128.xor(v128.xor(w14, w9), v128.xor(w3, w1)), 1);
  e = i32x4.add(i32x4.add(i32x4.add(e, k), w1), i32x4.add(parity(b, c, d), rotate(a, 5)));
  b = rotate(b, 30);
  w2 = rotate(v128.xor(v128.xor(w15, w10), v128.xor(w4, w2)), 1);
  d = i32x4.add(i32x4.add(i32x4.add(d, k), w2), i32x4.add(parity(a, b, c), rotate(e, 5)));
  a = rotate(a, 30);
  w3 = rotate(v128.xor(v128.xor(w0, w11), v128.xor(w5, w3)), 1);
  c = i32x4.add(i32x4.add(i32x4.add(c, k), w3), i32x4.add(parity(e, a, b), rotate(d, 5)));
  e = rotate(e, 30);
  w4 = rotate(v128.xor(v128.xor(w1, w12), v128.xor(w6, w4)), 1);
  b = i32x4.add(i32x4.add(i32x4.add(b, k), w4), i32x4.add(parity(d, e, a), rotate(c, 5)));
  d = rotate(d, 30);
  w5 = rotate(v128.xor(v128.xor(w2, w13), v128.xor(w7, w5)), 1);
  a = i32x4.add(i32x4.add(i32x4.add(a, k), w5), i32x4.add(parity(c, d, e), rotate(b, 5)));
  c = rotate(c, 30);
  w6 = rotate(v128.xor(v128.xor(w3, w14), v128.xor(w8, w6)), 1);
  e = i32x4.add(i32x4.add(i32x4.add(e, k), w6), i32x4.add(parity(b, c, d), rotate(a, 5)));
  b = rotate(b, 30);
  w7 = rotate(v128.xor(v128.xor(w4, w15), v128.xor(w9, w7)), 1);
  d = i32x4.add(i32x4.add(i32x4.add(d, k), w7), i32x4.add(parity(a, b, c), rotate(e, 5)));
  a = rotate(a, 30);
  w8 = rotate(v128.xor(v128.xor(w5, w0), v128.xor(w10, w8)), 1);
  c = i32x4.add(i32x4.add(i32x4.add(c, k), w8), i32x4.add(parity(e, a, b), rotate(d, 5)));
  e = rotate(e, 30);
  w9 = rotate(v128.xor(v128.xor(w6, w1), v128.xor(w11, w9)), 1);
  b = i32x4.add(i32x4.add(i32x4.add(b, k), w9), i32x4.add(parity(d, e, a), rotate(c, 5)));
  d = rotate(d, 30);
  w10 = rotate(v128.xor(v128.xor(w7, w2), v128.xor(w12, w10)), 1);
  a = i32x4.add(i32x4.add(i32x4.add(a, k), w10), i32x4.add(parity(c, d, e), rotate(b, 5)));
  c = rotate(c, 30);
  w11 = rotate(v128.xor(v128.xor(w8, w3), v128.xor(w13, w11)), 1);
  e = i32x4.add(i32x4.add(i32x4.add(e, k), w11), i32x4.add(parity(b, c, d), rotate(a, 5)));
  b = rotate(b, 30);
  w12 = rotate(v128.xor(v128.xor(w9, w4), v128.xor(w14, w12)), 1);
  d = i32x4.add(i32x4.add(i32x4.add(d, k), w12), i32x4.add(parity(a, b, c), rotate(e, 5)));
  a = rotate(a, 30);
  w13 = rotate(v128.xor(v128.xor(w10, w5), v128.xor(w15, w13)), 1);
  c = i32x4.add(i32x4.add(i32x4.add(c, k), w13), i32x4.add(parity(e, a, b), rotate(d, 5)));
  e = rotate(e, 30);
  w14 = rotate(v128.xor(v128.xor(w11, w6), v128.xor(w0, w14)), 1);
  b = i32x4.add(i32x4.add(i32x4.add(b, k), w14), i32x4.add(parity(d, e, a), rotate(c, 5)));
  d = rotate(d, 30);
  w15 = rotate(v128.xor(v128.xor(w12, w7), v128.xor(w1, w15)), 1);
  a = i32x4.add(i32x4.add(i32x4.add(a, k), w15), i32x4.add(parity(c, d, e), rotate(b, 5)));
  c = rotate(c, 30);

  v128.store(state, v128.bitselect(i32x4.add(a0, a), a0, mask));
  v128.store(state, v128.bitselect(i32x4.add(b0, b), b0, mask), 16);
  v128.store(state, v128.bitselect(i32x4.add(c0, c), c0, mask), 32);
  v128.store(state, v128.bitselect(i32x4.add(d0, d), d0, mask), 48);
  v128.store(state, v128.bitselect(i32x4.add(e0, e), e0, mask), 64);
}

function rotate(value: v128, by: i32): v128 {
  return v128.or(i32x4.shl(value, by), i32x4.shr_u(value, 32 - by));
}

/** Selects bits of y where x is set, and of z elsewhere. */
function choose(x: v128, y: v128, z: v128): v128 {
  return v128.bitselect(y, z, x);
}

function parity(x: v128, y: v128, z: v128): v128 {
  return v128.xor(v128.xor(x, y), z);
}

/** Returns the bitwise majority of x, y and z: their common value where y and z agree, x elsewhere. */
function majority(x: v128, y: v128, z: v128): v128 {
  return v128.bitselect(x, y, v128.xor(y, z));
}
