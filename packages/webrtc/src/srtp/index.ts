export { createPacketSealer } from './create-sealer.js';
export type { DatagramSink } from './datagram-sink.js';
export { SrtpError } from './errors.js';
export { AUTH_TAG_BYTES, MASTER_KEY_BYTES, MASTER_SALT_BYTES, type SrtpMasterKeys } from './key-derivation.js';
export {
  type PacketSealer,
  type PacketSealerOptions,
  type SealerCounters,
  type SealStream,
  SLOT_HEADROOM,
} from './packet-sealer.js';
export { OpenFailure, openFailureName, SrtpReceiveSession, type SrtpReceiveOptions } from './receive-session.js';
export { SRTCP_OVERHEAD, SrtpSendSession } from './send-session.js';
