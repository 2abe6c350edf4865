/** Messages of the data channel establishment protocol (RFC 8832 section 5). */

const OPEN = 0x03;
const ACK = 0x02;
const OPEN_HEADER = 12;
const UNORDERED = 0x80;
const RELIABLE = 0;
const LIMITED_RETRANSMITS = 1;
const LIMITED_LIFETIME = 2;
/** Maximum length of a label or a protocol, bytes. */
const MAX_NAME_BYTES = 64;

/** Delivery of a channel's messages: reliable without a limit. At most one limit is set. */
export interface ChannelKind {
  ordered: boolean;
  /** Retransmissions before a message is abandoned. */
  maxRetransmits?: number;
  /** Time in milliseconds during which a message may be retransmitted. */
  maxLifetimeMs?: number;
}

export interface ChannelName {
  /** 1 to 64 bytes of UTF-8. */
  label: string;
  /** Up to 64 bytes of UTF-8. */
  protocol: string;
  kind: ChannelKind;
}

export type ControlMessage = { type: 'open'; channel: ChannelName } | { type: 'ack' } | { type: 'invalid' };

export function isReliable({ maxRetransmits, maxLifetimeMs }: ChannelKind): boolean {
  return maxRetransmits === undefined && maxLifetimeMs === undefined;
}

export function readControl(message: Buffer): ControlMessage {
  if (message[0] === ACK) return { type: 'ack' };
  if (message[0] !== OPEN || message.length < OPEN_HEADER) return { type: 'invalid' };
  const labelEnd = OPEN_HEADER + message.readUInt16BE(8);
  const end = labelEnd + message.readUInt16BE(10);
  const kind = readKind(message.readUInt8(1), message.readUInt32BE(4));
  const tooLong = labelEnd - OPEN_HEADER > MAX_NAME_BYTES || end - labelEnd > MAX_NAME_BYTES;
  if (kind === undefined || tooLong || labelEnd === OPEN_HEADER || end !== message.length) return { type: 'invalid' };
  const label = readName(message.subarray(OPEN_HEADER, labelEnd));
  const protocol = readName(message.subarray(labelEnd, end));
  if (label === undefined || protocol === undefined) return { type: 'invalid' };

  return { type: 'open', channel: { label, protocol, kind } };
}

export function writeOpen({ label, protocol, kind }: ChannelName): Buffer {
  const names = [Buffer.from(label), Buffer.from(protocol)] as const;
  const header = Buffer.alloc(OPEN_HEADER);
  const limit = kind.maxRetransmits ?? kind.maxLifetimeMs ?? 0;
  header[0] = OPEN;
  header[1] = typeOf(kind) | (kind.ordered ? 0 : UNORDERED);
  header.writeUInt32BE(limit, 4);
  header.writeUInt16BE(names[0].length, 8);
  header.writeUInt16BE(names[1].length, 10);

  return Buffer.concat([header, ...names]);
}

export function writeAck(): Buffer {
  return Buffer.of(ACK);
}

function typeOf({ maxRetransmits, maxLifetimeMs }: ChannelKind): number {
  if (maxRetransmits !== undefined) return LIMITED_RETRANSMITS;
  return maxLifetimeMs === undefined ? RELIABLE : LIMITED_LIFETIME;
}

function readKind(type: number, limit: number): ChannelKind | undefined {
  const ordered = (type & UNORDERED) === 0;
  switch (type & ~UNORDERED) {
    case RELIABLE:
      return { ordered };
    case LIMITED_RETRANSMITS:
      return { ordered, maxRetransmits: limit };
    case LIMITED_LIFETIME:
      return { ordered, maxLifetimeMs: limit };
    default:
      return undefined;
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function readName(bytes: Buffer): string | undefined {
  try {
    return utf8.decode(bytes);
  } catch {
    return undefined;
  }
}
