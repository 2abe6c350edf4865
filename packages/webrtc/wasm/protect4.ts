/*
 * AssemblyScript, not TypeScript: compiled by build.mjs to protect4.wasm, which is committed beside it.
 *
 * Encrypts and authenticates packets of up to four receivers at once: XOR with precomputed keystream, then HMAC-SHA1
 * (RFC 2104, FIPS 180-4) with one receiver per 32-bit lane. The caller has written the headers and owns the memory.
 *
 * A lane's job is a record of 80 bytes at LANES + lane * 80, all little-endian 32-bit words:
 *    0 packet     address of its RTP header; 112 bytes after the longest packet must be free
 *    4 header     length of the header in bytes
 *    8 prefix     bytes of payload already in place after the header
 *   12 source     address of the rest of the payload
 *   16 rest       bytes to copy
 *   20 keystream  address of the keystream for prefix and rest
 *   24 roc        roll-over counter
 *   28 unused
 *   32 inner      SHA-1 state after the block of the inner padded key, 5 words
 *   52 outer      the same for the outer one
 */

import { compress } from './sha1x4';

const LANES: usize = 0;
const LANE_BYTES: usize = 80;
/** Hash state of four lanes: 5 vectors. */
const STATE: usize = 512;
/** One block of each of four messages: 16 vectors. */
const WORDS: usize = 1024;

/** Transposes four words of each message, in byte order, into vectors that hold one word of all four. */
function gather(to: usize, p0: usize, p1: usize, p2: usize, p3: usize): void {
  const order = v128(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12);
  const w0 = i8x16.swizzle(v128.load(p0), order);
  const w1 = i8x16.swizzle(v128.load(p1), order);
  const w2 = i8x16.swizzle(v128.load(p2), order);
  const w3 = i8x16.swizzle(v128.load(p3), order);
  const low01 = v128.shuffle<i32>(w0, w1, 0, 4, 1, 5);
  const high01 = v128.shuffle<i32>(w0, w1, 2, 6, 3, 7);
  const low23 = v128.shuffle<i32>(w2, w3, 0, 4, 1, 5);
  const high23 = v128.shuffle<i32>(w2, w3, 2, 6, 3, 7);
  v128.store(to, v128.shuffle<i64>(low01, low23, 0, 2));
  v128.store(to + 16, v128.shuffle<i64>(low01, low23, 1, 3));
  v128.store(to + 32, v128.shuffle<i64>(high01, high23, 0, 2));
  v128.store(to + 48, v128.shuffle<i64>(high01, high23, 1, 3));
}

/** Loads the states at `offset` of the four lanes' records into STATE. */
function loadState(offset: usize): void {
  for (let word: usize = 0; word < 5; word += 1) {
    const from = LANES + offset + word * 4;
    let vector = v128.load32_zero(from);
    vector = v128.load32_lane(from + LANE_BYTES, vector, 1);
    vector = v128.load32_lane(from + LANE_BYTES * 2, vector, 2);
    vector = v128.load32_lane(from + LANE_BYTES * 3, vector, 3);
    v128.store(STATE + word * 16, vector);
  }
}

/**
 * Encrypts one lane's payload and pads its message for the inner hash. Returns the number of message blocks. Copies in
 * units of 16 bytes; padding overwrites what it writes past the payload.
 */
function encrypt(record: usize): i32 {
  const packet = <usize>load<u32>(record);
  const prefix = <usize>load<u32>(record, 8);
  const rest = <usize>load<u32>(record, 16);
  let keystream = <usize>load<u32>(record, 20);
  let to = packet + <usize>load<u32>(record, 4);
  for (const end = to + prefix; to < end; to += 1, keystream += 1) {
    store<u8>(to, load<u8>(to) ^ load<u8>(keystream));
  }
  let from = <usize>load<u32>(record, 12);
  const end = to + rest;
  for (; to < end; to += 16, from += 16, keystream += 16) {
    v128.store(to, v128.xor(v128.load(from), v128.load(keystream)));
  }

  store<u32>(end, bswap<u32>(load<u32>(record, 24)));
  const length = end + 4 - packet;
  const blocks = (length + 9 + 63) >>> 6;
  // The mark, zeros up to the last 8 bytes, and the length in bits including the padded key's block.
  const zero = i32x4.splat(0);
  v128.store(end + 4, zero);
  v128.store(end + 20, zero);
  v128.store(end + 36, zero);
  v128.store(end + 52, zero);
  v128.store(end + 68, zero);
  store<u8>(end + 4, 0x80);
  store<u32>(packet + blocks * 64 - 4, bswap<u32>(<u32>((length + 64) << 3)));
  return <i32>blocks;
}

function writeTag(lane: usize, first: u32, second: u32, third: u32): void {
  const record = LANES + lane * LANE_BYTES;
  const end = <usize>(load<u32>(record) + load<u32>(record, 4) + load<u32>(record, 8) + load<u32>(record, 16));
  store<u32>(end, bswap<u32>(first));
  store<u32>(end, bswap<u32>(second), 4);
  store<u16>(end, bswap<u16>(<u16>(third >>> 16)), 8);
}

/** Seals the first `count` (1..4) lanes; the others may hold anything. The 10-byte tags follow the payloads. */
export function protect(count: i32): void {
  const blocks0 = encrypt(LANES);
  const blocks1 = count > 1 ? encrypt(LANES + LANE_BYTES) : 0;
  const blocks2 = count > 2 ? encrypt(LANES + LANE_BYTES * 2) : 0;
  const blocks3 = count > 3 ? encrypt(LANES + LANE_BYTES * 3) : 0;
  const most = max(max(blocks0, blocks1), max(blocks2, blocks3));
  let blocks = i32x4.splat(blocks0);
  blocks = i32x4.replace_lane(blocks, 1, blocks1);
  blocks = i32x4.replace_lane(blocks, 2, blocks2);
  blocks = i32x4.replace_lane(blocks, 3, blocks3);

  // An idle lane reads the first lane's data.
  let p0 = <usize>load<u32>(LANES);
  let p1 = count > 1 ? <usize>load<u32>(LANES + LANE_BYTES) : p0;
  let p2 = count > 2 ? <usize>load<u32>(LANES + LANE_BYTES * 2) : p0;
  let p3 = count > 3 ? <usize>load<u32>(LANES + LANE_BYTES * 3) : p0;
  loadState(32);
  for (let block = 0; block < most; block += 1) {
    gather(WORDS, p0, p1, p2, p3);
    gather(WORDS + 64, p0 + 16, p1 + 16, p2 + 16, p3 + 16);
    gather(WORDS + 128, p0 + 32, p1 + 32, p2 + 32, p3 + 32);
    gather(WORDS + 192, p0 + 48, p1 + 48, p2 + 48, p3 + 48);
    compress(STATE, WORDS, i32x4.gt_s(blocks, i32x4.splat(block)));
    p0 += 64;
    p1 += 64;
    p2 += 64;
    p3 += 64;
  }

  // Outer hash: one block of the inner digest, the mark, and the length of 64 + 20 bytes.
  for (let word: usize = 0; word < 80; word += 16) v128.store(WORDS + word, v128.load(STATE + word));
  v128.store(WORDS + 80, i32x4.splat(0x80000000));
  for (let word: usize = 96; word < 240; word += 16) v128.store(WORDS + word, i32x4.splat(0));
  v128.store(WORDS + 240, i32x4.splat(672));
  loadState(52);
  compress(STATE, WORDS, i32x4.splat(-1));

  const first = v128.load(STATE);
  const second = v128.load(STATE + 16);
  const third = v128.load(STATE + 32);
  writeTag(0, i32x4.extract_lane(first, 0), i32x4.extract_lane(second, 0), i32x4.extract_lane(third, 0));
  if (count > 1) writeTag(1, i32x4.extract_lane(first, 1), i32x4.extract_lane(second, 1), i32x4.extract_lane(third, 1));
  if (count > 2) writeTag(2, i32x4.extract_lane(first, 2), i32x4.extract_lane(second, 2), i32x4.extract_lane(third, 2));
  if (count > 3) writeTag(3, i32x4.extract_lane(first, 3), i32x4.extract_lane(second, 3), i32x4.extract_lane(third, 3));
}

/** Writes SHA-1 states after the padded keys at `pads` (inner) and `pads + 64` (outer) to 10 words at `to`. */
export function padStates(pads: usize, to: usize): void {
  v128.store(STATE, i32x4.splat(0x67452301));
  v128.store(STATE + 16, i32x4.splat(0xefcdab89));
  v128.store(STATE + 32, i32x4.splat(0x98badcfe));
  v128.store(STATE + 48, i32x4.splat(0x10325476));
  v128.store(STATE + 64, i32x4.splat(0xc3d2e1f0));
  for (let at: usize = 0; at < 64; at += 16) {
    gather(WORDS + at * 4, pads + at, pads + 64 + at, pads + at, pads + at);
  }
  compress(STATE, WORDS, i32x4.splat(-1));
  for (let word: usize = 0; word < 5; word += 1) {
    const vector = v128.load(STATE + word * 16);
    store<u32>(to + word * 4, i32x4.extract_lane(vector, 0));
    store<u32>(to + 20 + word * 4, i32x4.extract_lane(vector, 1));
  }
}

/**
 * Writes AES-CM counter blocks (RFC 3711 section 4.1.1) to `to`: `blocks` for each of `packets` consecutive packets.
 * `word0` and `word1` are in memory byte order; `salt2` and `salt3` are numbers, combined with the upper 32 and the
 * lower 16 bits of the packet's index.
 */
export function counterBlocks(
  to: usize,
  word0: u32,
  word1: u32,
  salt2: u32,
  salt3: u32,
  roc: u32,
  sequence: u32,
  packets: i32,
  blocks: u32,
): void {
  let at = to;
  let high = roc;
  let low = sequence;
  for (let packet = 0; packet < packets; packet += 1) {
    let block = i32x4.splat(word0);
    block = i32x4.replace_lane(block, 1, word1);
    block = i32x4.replace_lane(block, 2, bswap<u32>(salt2 ^ high));
    const base = (salt3 ^ low) << 16;
    for (let count: u32 = 0; count < blocks; count += 1) {
      v128.store(at, i32x4.replace_lane(block, 3, bswap<u32>(base | count)));
      at += 16;
    }
    low += 1;
    if (low === 65536) {
      low = 0;
      high += 1;
    }
  }
}
