export { findStartCode, splitAnnexB } from './annex-b.js';
export { type H264AccessUnit, H264Depacketiser, NalType, nalType, packetiseH264, toAnnexB } from './h264.js';
export { opusSamples } from './opus.js';
export { type OrderedPacket, ReorderBuffer, type ReorderBufferOptions } from './reorder-buffer.js';
export { Vp8Depacketiser, type Vp8Frame } from './vp8.js';
