import type { OrderedPacket } from '../reorder-buffer.js';
import {
  type AssembledFrame,
  EntryPoint,
  type FrameAssembler,
  type PayloadFormat,
  type PayloadReader,
} from './payload-format.js';

/** Samples per frame at 48 kHz for each configuration number, RFC 6716 table 2. */
const FRAME_SAMPLES = [
  480, 960, 1920, 2880, 480, 960, 1920, 2880, 480, 960, 1920, 2880, 480, 960, 480, 960, 120, 240, 480, 960, 120, 240,
  480, 960, 120, 240, 480, 960, 120, 240, 480, 960,
];

/** Maximum packet duration: 120 ms (RFC 6716 section 3.2.5). */
const MAX_SAMPLES = 5760;

/**
 * Returns the duration of the Opus packet `packet[start, end)` in samples at 48 kHz, from its TOC byte (RFC 6716
 * section 3.1), or undefined if the packet is malformed.
 */
export function opusSamples(packet: Buffer, start = 0, end = packet.length): number | undefined {
  if (start >= end) return undefined;
  const toc = packet[start] as number;
  const each = FRAME_SAMPLES[toc >> 3] as number;
  const code = toc & 3;
  let frames = code === 0 ? 1 : 2;
  if (code === 3) {
    if (end - start < 2) return undefined;
    frames = (packet[start + 1] as number) & 0x3f;
    if (frames === 0) return undefined;
  }
  const samples = each * frames;
  return samples > MAX_SAMPLES ? undefined : samples;
}

/** Each payload is one Opus packet (RFC 7587 section 4.2), and a receiver can start with any of them. */
class OpusReader implements PayloadReader {
  readonly entryPoint = EntryPoint.yes;
  readonly temporalLayer = 0;
  readonly spatialLayer = 0;
  readonly endsLayer = false;
  readonly switchesTo = -1;
  readonly headerLength = 0;

  read(): boolean {
    return true;
  }

  write(): number {
    return 0;
  }
}

class OpusAssembler implements FrameAssembler {
  readonly needsKeyframe = false;
  readonly heldBytes = 0;

  push({ timestamp, payload }: OrderedPacket): readonly AssembledFrame[] {
    return [{ timestamp, key: true, data: payload }];
  }

  gap(): void {}
}

export const OPUS: PayloadFormat = {
  kind: 'audio',
  mimeType: 'audio/opus',
  label: 'Opus',
  clockRate: 48_000,
  onRequest: false,
  // Stereo only lets the receiver play both channels: a sender with one still sends one (RFC 7587 section 7.1).
  offered: { payloadType: 111, channels: 2, parameters: 'minptime=10;useinbandfec=1;stereo=1' },
  reordersPictures: false,
  hasLayers: false,
  hasDescriptors: false,
  obstacle: () => undefined,
  rank: () => 0,
  createReader: () => new OpusReader(),
  createNumbering: () => undefined,
  createAssembler: () => new OpusAssembler(),
  createAnnouncedParts: () => undefined,
  packetise: (frame) => ({ key: true, payloads: frame.length === 0 ? [] : [frame] }),
};
