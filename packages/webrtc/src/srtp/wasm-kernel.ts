import { readFileSync } from 'node:fs';

/** Size of one lane's record, in 32-bit words; see wasm/protect4.ts. */
export const LANE_WORDS = 20;
export const LANES = 4;
/** The kernel keeps its state and message schedule below this address. */
export const KERNEL_BYTES = 4096;
/** Bytes after a packet that the kernel uses for padding. */
export const KERNEL_TAILROOM = 112;

/** Functions exported by wasm/protect4.wasm. */
export interface SealKernel {
  protect(count: number): void;
  padStates(pads: number, to: number): void;
  counterBlocks(
    to: number,
    word0: number,
    word1: number,
    salt2: number,
    salt3: number,
    roc: number,
    sequence: number,
    packets: number,
    blocks: number,
  ): void;
}

/** The part of the WebAssembly API that we use; TypeScript only provides its types with the browser library. */
interface WebAssemblyApi {
  Module: new (bytes: Uint8Array) => object;
  Instance: new (module: object, imports: { env: { memory: object } }) => { exports: unknown };
  Memory: new (size: { initial: number; maximum: number }) => { readonly buffer: ArrayBuffer };
}

const PAGE = 65_536;
const api = (globalThis as { WebAssembly?: WebAssemblyApi }).WebAssembly;
let compiled: object | undefined;

/**
 * Returns the kernel with a memory of at least `bytes`. The memory never grows: growing would detach every view of it,
 * even those that the operating system still sends from. Throws WebAssembly's error without SIMD support.
 */
export function loadKernel(bytes: number): { kernel: SealKernel; memory: ArrayBuffer } {
  if (api === undefined) throw new TypeError('this runtime has no WebAssembly');
  compiled ??= new api.Module(readFileSync(new URL('../../wasm/protect4.wasm', import.meta.url)));
  const pages = Math.ceil(bytes / PAGE);
  const memory = new api.Memory({ initial: pages, maximum: pages });
  const { exports } = new api.Instance(compiled, { env: { memory } });
  return { kernel: exports as SealKernel, memory: memory.buffer };
}
