/** Session descriptions, RFC 8866, as far as one audio stream needs them. */
import { isIP } from 'node:net';
import { printable, SipError } from '../errors.js';

export type Direction = 'sendrecv' | 'sendonly' | 'recvonly' | 'inactive';

export interface SdpFormat {
  payloadType: number;
  /** Codec name as written; compared case-insensitively. */
  encoding: string;
  clockRate: number;
  channels: number;
  fmtp: string | undefined;
}

export interface SdpMedia {
  /** `audio`, `video`, ... */
  kind: string;
  /** 0 when rejected or ended. */
  port: number;
  protocol: string;
  /** The format list as written, for repeating it in a rejection. */
  formatList: string;
  address: string | undefined;
  direction: Direction;
  formats: readonly SdpFormat[];
}

export interface Sdp {
  /** Version in the o= line, incremented on each change. */
  version: string;
  media: readonly SdpMedia[];
}

const MAX_BYTES = 16_384;
const MAX_LINES = 400;
const MAX_MEDIA = 16;
const MAX_FORMATS = 64;

const staticFormats: Readonly<Record<number, readonly [string, number]>> = {
  0: ['PCMU', 8000],
  3: ['GSM', 8000],
  8: ['PCMA', 8000],
  9: ['G722', 8000],
  18: ['G729', 8000],
};

interface Draft extends SdpMedia {
  formats: SdpFormat[];
  ended: boolean;
}

/** @throws SipError SDP_UNUSABLE and nothing else */
export function parseSdp(data: Buffer): Sdp {
  if (data.length > MAX_BYTES)
    throw new SipError('SDP_UNUSABLE', `a session description of ${data.length} bytes is too long`);
  const lines = data.toString('utf8').split(/\r?\n/, MAX_LINES + 1);
  if (lines.length > MAX_LINES) throw new SipError('SDP_UNUSABLE', 'the session description has too many lines');
  if (lines[0]?.trim() !== 'v=0')
    throw new SipError('SDP_UNUSABLE', `${printable(lines[0] ?? '')} does not start a session description`);

  const media: Draft[] = [];
  let version = '';
  let address: string | undefined;
  let direction: Direction = 'sendrecv';
  for (const line of lines.slice(1)) {
    if (line === '') continue;
    if (line[1] !== '=')
      throw new SipError('SDP_UNUSABLE', `${printable(line)} is not a line of a session description`);
    const value = line.slice(2).trim();
    const current = media.at(-1);
    switch (line[0]) {
      case 'o':
        version = value.split(' ')[2] ?? '';
        break;
      case 'm':
        if (media.length >= MAX_MEDIA) throw new SipError('SDP_UNUSABLE', 'too many media sections');
        media.push(parseMedia(value, { address, direction }));
        break;
      case 'c':
        if (current !== undefined) current.address = parseConnection(value);
        else address = parseConnection(value);
        break;
      case 'a':
        if (isDirection(value)) {
          if (current !== undefined) current.direction = value;
          else direction = value;
        } else if (current !== undefined) parseAttribute(current, value);
        break;
      default:
      // Other lines do not affect audio.
    }
  }
  return { version, media };
}

function parseMedia(value: string, session: { address: string | undefined; direction: Direction }): Draft {
  const match = /^(\S{1,32}) (\d{1,5})(?:\/\d{1,5})? (\S{1,64})((?: \S{1,32}){1,64})$/.exec(value);
  const port = Number(match?.[2]);
  if (!match || port > 65_535) throw new SipError('SDP_UNUSABLE', `${printable(value)} is not a media line`);
  const formats: SdpFormat[] = [];
  for (const text of (match[4] as string).trim().split(' ')) {
    const payloadType = Number(text);
    if (!/^\d{1,3}$/.test(text) || payloadType > 127 || formats.length >= MAX_FORMATS) continue;
    const [encoding, clockRate] = staticFormats[payloadType] ?? ['', 0];
    formats.push({ payloadType, encoding, clockRate, channels: 1, fmtp: undefined });
  }
  return {
    kind: match[1] as string,
    port,
    protocol: match[3] as string,
    formatList: (match[4] as string).trim(),
    formats,
    ended: false,
    ...session,
  };
}

function parseConnection(value: string): string {
  const [network, family, where] = value.split(' ');
  const address = where?.split('/')[0] ?? '';
  if (network !== 'IN' || (family !== 'IP4' && family !== 'IP6') || address === '' || address.length > 253)
    throw new SipError('SDP_UNUSABLE', `${printable(value)} is not a connection address`);
  return address;
}

function parseAttribute(media: Draft, value: string): void {
  const map = /^rtpmap:(\d{1,3}) ([^\s/]{1,64})\/(\d{1,6})(?:\/(\d))?$/.exec(value);
  if (map) {
    const format = media.formats.find((one) => one.payloadType === Number(map[1]));
    if (format === undefined) return;
    format.encoding = map[2] as string;
    format.clockRate = Number(map[3]);
    format.channels = Number(map[4] ?? 1);
    return;
  }
  const fmtp = /^fmtp:(\d{1,3}) (\S.{0,1000})$/.exec(value);
  const format = media.formats.find((one) => one.payloadType === Number(fmtp?.[1]));
  if (fmtp && format !== undefined) format.fmtp = fmtp[2];
}

function isDirection(text: string): text is Direction {
  return text === 'sendrecv' || text === 'sendonly' || text === 'recvonly' || text === 'inactive';
}

/** The o= line of our descriptions: all but the version stays the same throughout a call (RFC 3264 section 8). */
export interface SdpSession {
  id: number;
  version: number;
  /** IP address of whoever made the first description. */
  origin: string;
}

export interface SdpWriteOptions {
  /** IP address for RTP. */
  address: string;
  session: SdpSession;
  media: readonly SdpMedia[];
}

export function writeSdp(options: SdpWriteOptions): Buffer {
  const { address, session } = options;
  const { id, version, origin } = session;
  const family = familyOf(address);
  const lines = [
    'v=0',
    `o=- ${id} ${version} IN ${familyOf(origin)} ${origin}`,
    's=-',
    `c=IN ${family} ${address}`,
    't=0 0',
  ];
  for (const media of options.media) {
    lines.push(`m=${media.kind} ${media.port} ${media.protocol} ${media.formatList}`);
    if (media.port === 0) continue;
    for (const format of media.formats) {
      const channels = format.channels === 1 ? '' : `/${format.channels}`;
      lines.push(`a=rtpmap:${format.payloadType} ${format.encoding}/${format.clockRate}${channels}`);
      if (format.fmtp !== undefined) lines.push(`a=fmtp:${format.payloadType} ${format.fmtp}`);
    }
    lines.push('a=ptime:20', `a=${media.direction}`);
  }
  return Buffer.from(`${lines.join('\r\n')}\r\n`);
}

function familyOf(address: string): 'IP4' | 'IP6' {
  return isIP(address) === 6 ? 'IP6' : 'IP4';
}
