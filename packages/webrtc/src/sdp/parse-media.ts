import type { Direction, OfferedCodec, OfferedExtension, OfferedMedia, OfferedSource, SdpLimits } from './offer.js';
import { TransportParser } from './parse-transport.js';

/** SCTP port used by all clients; it is not a real port. */
const SCTP_PORT = 5_000;

type Fail = (what: string) => never;

interface RtpMap {
  encodingName: string;
  clockRate: number;
  channels?: number;
}

const DIRECTIONS: ReadonlySet<string> = new Set(['sendrecv', 'sendonly', 'recvonly', 'inactive']);

/** What has been read of one media section. */
export type MediaSection = Pick<MediaParser, 'transport' | 'identity' | 'finish'>;

/** Collects the lines of one media section. */
export class MediaParser {
  readonly transport = new TransportParser();
  readonly #line: string;
  readonly #limits: SdpLimits;
  readonly #type: string;
  readonly #port: number;
  readonly #protocol: string;
  readonly #formats: string[];
  #mid: string | undefined;
  #direction: Direction | undefined;
  #bundleOnly = false;
  /** The parts of `a=msid`. */
  #msid: string[] | undefined;
  #simulcast: string[] | undefined;
  #sctpPort: number | undefined;
  readonly #rtpmaps = new Map<string, RtpMap>();
  readonly #parameters = new Map<string, string>();
  readonly #feedback = new Map<string, Set<string>>();
  readonly #extensions = new Map<number, string>();
  readonly #rids = new Set<string>();
  readonly #ssrcs = new Set<number>();
  readonly #rtxOf = new Map<number, number>();
  /** What sections that differ in their mid only have in common. */
  #content: Omit<OfferedMedia, 'refused' | 'isData'> | undefined;

  constructor(line: string, limits: SdpLimits, fail: Fail) {
    this.#line = line;
    this.#limits = limits;
    const match = /^m=([a-z0-9-]+) (\d{1,5})(?:\/\d{1,5})? ([A-Za-z0-9/]+)((?: [\x21-\x7e]+)+) *$/.exec(line);
    if (match === null) fail('not an m-line');
    const [, type = '', port = '', protocol = '', formats = ''] = match ?? [];
    this.#type = type;
    this.#port = Number(port);
    this.#protocol = protocol;
    this.#formats = formats.trim().split(/ +/);
    this.#within(this.#formats.length, fail);
  }

  identity(): { mid: string | undefined; line: string } {
    return { mid: this.#mid, line: this.#line };
  }

  /** Returns a section whose lines differ from those of this one in their mid only. */
  again(mid: string): MediaSection {
    return {
      transport: this.transport,
      identity: () => ({ mid, line: this.#line }),
      finish: (bundled, session) => ({ ...this.finish(bundled, session), mid }),
    };
  }

  attribute(name: string, value: string, fail: Fail): void {
    switch (name) {
      case 'mid':
        if (this.#mid !== undefined) fail('a second mid');
        this.#mid = value.trim();
        break;
      case 'sendrecv':
      case 'sendonly':
      case 'recvonly':
      case 'inactive':
        this.#direction = name;
        break;
      case 'bundle-only':
        this.#bundleOnly = true;
        break;
      case 'msid':
        this.#msid ??= value.trim().split(/ +/, 2);
        break;
      case 'rtpmap':
        this.#rtpmap(value, fail);
        break;
      case 'fmtp': {
        const [payloadType, text] = splitOnce(value);
        if (!this.#parameters.has(payloadType)) this.#parameters.set(payloadType, text);
        this.#within(this.#parameters.size, fail);
        break;
      }
      case 'rtcp-fb': {
        const [payloadType, text] = splitOnce(value);
        const known = this.#feedback.get(payloadType) ?? new Set();
        known.add(text.trim());
        this.#feedback.set(payloadType, known);
        this.#within(Math.max(this.#feedback.size, known.size), fail);
        break;
      }
      case 'extmap':
        this.#extmap(value, fail);
        break;
      case 'rid': {
        const [id = '', direction] = value.split(' ', 2);
        // RFC 8851 section 10: an id consists of letters, digits, hyphens and underscores.
        if (!/^[A-Za-z0-9_-]{1,255}$/.test(id)) fail('not a rid');
        if (direction !== 'send') break;
        if (this.#rids.has(id)) fail('a rid twice');
        this.#rids.add(id);
        this.#within(this.#rids.size, fail);
        break;
      }
      case 'simulcast':
        this.#simulcast ??= simulcastSendList(value);
        this.#within(this.#simulcast.length, fail);
        break;
      case 'ssrc':
        this.#ssrcs.add(toSsrc(value.split(' ', 1)[0] ?? '', fail));
        this.#within(this.#ssrcs.size, fail);
        break;
      case 'ssrc-group': {
        const [semantics, first, second] = value.split(' ', 3);
        if (semantics !== 'FID' || first === undefined || second === undefined) break;
        this.#rtxOf.set(toSsrc(first, fail), toSsrc(second, fail));
        this.#within(this.#rtxOf.size, fail);
        break;
      }
      case 'sctp-port':
        this.#sctpPort ??= Number(value.trim());
        break;
      default:
        this.transport.attribute(name, value, fail);
    }
  }

  finish(bundled: boolean, session: { direction: string | undefined; allowsMixed: boolean }): OfferedMedia {
    const usable = bundled && (this.#port !== 0 || this.#bundleOnly);
    this.#content ??= this.#read(session);
    const refused = this.#content.kind === 'other' || !usable;

    return { ...this.#content, refused, isData: usable && this.#isData() };
  }

  #read(session: { direction: string | undefined; allowsMixed: boolean }): Omit<OfferedMedia, 'refused' | 'isData'> {
    const rtx = new Set(this.#rtxOf.values());
    const rids = this.#simulcast === undefined ? [...this.#rids] : this.#simulcast.filter((rid) => this.#rids.has(rid));
    const [streamId, msidTrackId] = this.#msid ?? [];
    return {
      mid: this.#mid ?? '',
      kind: this.#type === 'audio' || this.#type === 'video' ? this.#type : 'other',
      type: this.#type,
      protocol: this.#protocol,
      formats: this.#formats,
      direction: this.#direction ?? (isDirection(session.direction) ? session.direction : 'sendrecv'),
      codecs: this.#codecs(),
      extensions: [...this.#extensions].map(([id, uri]): OfferedExtension => ({ id, uri })),
      allowsMixedExtensions: session.allowsMixed,
      rids,
      sources: [...this.#ssrcs]
        .filter((ssrc) => !rtx.has(ssrc))
        .map((ssrc): OfferedSource => {
          const other = this.#rtxOf.get(ssrc);
          return other === undefined ? { ssrc } : { ssrc, rtx: other };
        }),
      ...(streamId === undefined || streamId === '-' ? {} : { streamId }),
      ...(msidTrackId === undefined ? {} : { msidTrackId }),
    };
  }

  #isData(): boolean {
    const isSctp = this.#type === 'application' && this.#protocol === 'UDP/DTLS/SCTP';
    return isSctp && this.#formats[0] === 'webrtc-datachannel' && this.#sctpPort === SCTP_PORT;
  }

  #codecs(): OfferedCodec[] {
    const everywhere = this.#feedback.get('*') ?? [];
    return this.#formats.flatMap((format): OfferedCodec[] => {
      const map = this.#rtpmaps.get(format);
      if (map === undefined) return [];
      return [
        {
          payloadType: Number(format),
          ...map,
          name: map.encodingName.toLowerCase(),
          parameters: this.#parameters.get(format) ?? '',
          feedback: [...new Set([...(this.#feedback.get(format) ?? []), ...everywhere])],
        },
      ];
    });
  }

  #rtpmap(value: string, fail: Fail): void {
    const match = /^(\d{1,3}) +([\x21-\x2e\x30-\x7e]{1,64})\/(\d{1,9})(?:\/(\d{1,3}))? *$/.exec(value);
    if (match === null) fail('not an rtpmap');
    const [, payloadType = '', encodingName = '', clockRate = '', channels] = match ?? [];
    if (Number(payloadType) > 127) fail('a payload type over 127');
    // The key is the format as spelled in the m-line. Further mappings of the same payload type are ignored.
    if (this.#rtpmaps.has(payloadType)) return;
    this.#rtpmaps.set(payloadType, {
      encodingName,
      clockRate: Number(clockRate),
      ...(channels === undefined ? {} : { channels: Number(channels) }),
    });
    this.#within(this.#rtpmaps.size, fail);
  }

  #extmap(value: string, fail: Fail): void {
    const match = /^(\d{1,5})(?:\/[a-z]+)? +([\x21-\x7e]{1,255})(?: .*)?$/.exec(value);
    if (match === null) fail('not an extmap');
    const [, text = '', uri = ''] = match ?? [];
    const id = Number(text);
    const known = this.#extensions.get(id);
    if (known !== undefined && known !== uri) fail('an extension id twice');
    this.#extensions.set(id, uri);
    this.#within(this.#extensions.size, fail);
  }

  #within(count: number, fail: Fail): void {
    if (count > this.#limits.maxPerMedia) fail(`more than ${this.#limits.maxPerMedia} of a kind`);
  }
}

/** Parses `send l;~m;h recv x` (RFC 8853 section 5.1). Takes the first alternative and ignores `~` (paused). */
function simulcastSendList(value: string): string[] {
  const words = value.trim().split(/ +/);
  const list = words[words.indexOf('send') + 1];
  if (!words.includes('send') || list === undefined) return [];
  return list.split(';').map((alternatives) => (alternatives.split(',', 1)[0] ?? '').replace(/^~/, ''));
}

function toSsrc(text: string, fail: Fail): number {
  const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  return value >= 0 && value <= 0xffff_ffff ? value : fail('not an SSRC');
}

function splitOnce(value: string): [string, string] {
  const space = value.indexOf(' ');
  return space < 0 ? [value, ''] : [value.slice(0, space), value.slice(space + 1)];
}

function isDirection(name: string | undefined): name is Direction {
  return name !== undefined && DIRECTIONS.has(name);
}
