import { ComponentError } from '../errors.js';

/** Opus identification header in Ogg, RFC 7845 section 5.1. */
export interface OpusHead {
  channels: number;
  /** Samples at 48 kHz that a player skips at the start. */
  preSkip: number;
}

/** Returns undefined for other packets. */
export function readOpusHead(packet: Buffer): OpusHead | undefined {
  if (packet.length < 19 || packet.toString('latin1', 0, 8) !== 'OpusHead') return undefined;
  const version = packet[8]!;
  if (version >>> 4 !== 0) throw new ComponentError('BAD_OGG', `the Opus version ${version} is not known`);
  const channels = packet[9]!;
  const family = packet[18]!;
  if (family !== 0 || channels < 1 || channels > 2) {
    throw new ComponentError(
      'BAD_OGG',
      `Opus with ${channels} channels in mapping family ${family} cannot be sent in one RTP stream`,
    );
  }
  return { channels, preSkip: packet.readUInt16LE(10) };
}

export function writeOpusHead({ channels, preSkip }: OpusHead): Buffer {
  const head = Buffer.alloc(19);
  head.write('OpusHead', 0, 'latin1');
  head[8] = 1;
  head[9] = channels;
  head.writeUInt16LE(preSkip, 10);
  head.writeUInt32LE(48_000, 12);
  return head;
}

/** Comment header without comments, RFC 7845 section 5.2. */
export function writeOpusTags(vendor: string): Buffer {
  const name = Buffer.from(vendor);
  const tags = Buffer.alloc(8 + 4 + name.length + 4);
  tags.write('OpusTags', 0, 'latin1');
  tags.writeUInt32LE(name.length, 8);
  name.copy(tags, 12);
  return tags;
}
