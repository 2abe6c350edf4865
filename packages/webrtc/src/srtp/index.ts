export { createPacketSealer } from './create-sealer.js';
export { type PacketSealer, type SealStream } from './packet-sealer.js';
export { SrtpReceiveSession } from './receive-session.js';
export { SrtpSendSession } from './send-session.js';
