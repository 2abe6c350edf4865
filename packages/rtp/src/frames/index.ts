export { findStartCode, splitAnnexB } from './annex-b.js';
export { H264Depacketiser, NalType, nalType, packetiseH264, toAnnexB } from './h264.js';
export { opusSamples } from './opus.js';
export { type OrderedPacket, ReorderBuffer } from './reorder-buffer.js';
export { Vp8Depacketiser } from './vp8.js';
