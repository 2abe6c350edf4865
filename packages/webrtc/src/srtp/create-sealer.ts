import { WebrtcError } from '../errors.js';
import { JavascriptSealer } from './javascript-sealer.js';
import type { PacketSealer, PacketSealerOptions } from './packet-sealer.js';
import { WasmSealer } from './wasm-sealer.js';

/** Size of an Ethernet jumbo frame; WebRTC packets are far smaller. */
const MAX_PACKET_BYTES = 8192;

/**
 * Returns the fastest sealer that this machine supports; `kind` names it.
 * @throws WebrtcError BAD_OPTION when packets exceed 8,192 bytes, or for `kind: 'wasm'` without WebAssembly SIMD
 */
export function createPacketSealer(options: PacketSealerOptions = {}): PacketSealer {
  const slots = options.slots ?? 256;
  const maxPacketBytes = options.maxPacketBytes ?? 1600;
  const keystreamBytes = options.keystreamBytes ?? 32 * 1024 * 1024;
  if (maxPacketBytes > MAX_PACKET_BYTES) {
    throw new WebrtcError(
      'BAD_OPTION',
      `a sealer takes packets of at most ${MAX_PACKET_BYTES} bytes, not ${maxPacketBytes}`,
    );
  }
  if (options.kind === 'javascript') return new JavascriptSealer({ slots, maxPacketBytes });
  try {
    return new WasmSealer({ slots, maxPacketBytes, keystreamBytes });
  } catch (cause) {
    if (options.kind === 'wasm') throw new WebrtcError('BAD_OPTION', 'WebAssembly SIMD is not available', { cause });
    return new JavascriptSealer({ slots, maxPacketBytes });
  }
}
