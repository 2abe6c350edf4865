import { JavascriptSealer } from './javascript-sealer.js';
import type { PacketSealer, PacketSealerOptions } from './packet-sealer.js';

export function createPacketSealer(options: PacketSealerOptions = {}): PacketSealer {
  const slots = options.slots ?? 256;
  const maxPacketBytes = options.maxPacketBytes ?? 1600;
  return new JavascriptSealer({ slots, maxPacketBytes });
}
