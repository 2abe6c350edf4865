/** Offer and answer for one audio stream, RFC 3264. */
import { isIP } from 'node:net';
import { SipError } from '../errors.js';
import type { Codec, CodecName } from './codecs.js';
import { codecs, TELEPHONE_EVENT_TYPE } from './codecs.js';
import { plainAddress } from './rtp-source.js';
import type { Direction, Sdp, SdpFormat, SdpMedia, SdpSession } from './sdp.js';
import { parseSdp, writeSdp } from './sdp.js';

/** The negotiated audio of a call. */
export interface NegotiatedAudio {
  /** Address and port of the other side; undefined for the 0.0.0.0 or :: of an old-style hold. */
  remote: { address: string; port: number } | undefined;
  codec: Codec;
  /** Payload type to send. */
  sendType: number;
  /** Payload types that can be received. */
  receiveTypes: ReadonlyMap<number, CodecName>;
  /** Payload types of telephone-event (RFC 4733) in each direction. */
  eventTypes: { receive: ReadonlySet<number>; send: number | undefined };
  /** Direction as seen from our side. */
  direction: Direction;
  /** IP addresses that signalling goes to: audio may come from them if `remote` is private. Default: none. */
  signallingHosts?: readonly string[];
}

export interface AudioNegotiatorOptions {
  /** IP address and port for RTP. */
  address: string;
  port: number;
  /** In order of preference. */
  codecs: readonly CodecName[];
  /** The session so far; `version` is that of the last description. */
  session: SdpSession;
}

/** Addresses that cannot be sent to: sockets would send to this machine instead. */
const UNSPECIFIED: ReadonlySet<string> = new Set(['0.0.0.0', '::']);

const mirrored: Readonly<Record<Direction, Direction>> = {
  sendrecv: 'sendrecv',
  sendonly: 'recvonly',
  recvonly: 'sendonly',
  inactive: 'inactive',
};

/** Makes offers and answers, and reads those of the other side, throughout a call. */
export class AudioNegotiator {
  readonly #options: AudioNegotiatorOptions;
  #session: SdpSession;
  #agreed: NegotiatedAudio | undefined;

  constructor(options: AudioNegotiatorOptions) {
    this.#options = options;
    this.#session = options.session;
  }

  get session(): SdpSession {
    return this.#session;
  }

  get agreed(): NegotiatedAudio | undefined {
    return this.#agreed;
  }

  offer(): Buffer {
    const formats = this.#options.codecs.map((name) => formatOf(codecs[name]));
    formats.push(eventFormat(TELEPHONE_EVENT_TYPE));
    return this.#write([this.#audio(formats, 'sendrecv', 'RTP/AVP')]);
  }

  /** Reads the answer to our offer. @throws SipError SDP_UNUSABLE */
  takeAnswer(data: Buffer): NegotiatedAudio {
    const { media } = audioOf(parseSdp(data));
    const receiveTypes = new Map(this.#options.codecs.map((name) => [codecs[name].payloadType, name]));
    this.#agreed = this.#agree(media, { receiveTypes, ownEventType: TELEPHONE_EVENT_TYPE });
    return this.#agreed;
  }

  /** Answers an offer and updates `agreed`. @throws SipError SDP_UNUSABLE when there is nothing in common */
  answer(data: Buffer): Buffer {
    const sdp = parseSdp(data);
    const { media, index } = audioOf(sdp);
    const agreed = this.#agree(media, { receiveTypes: new Map(), ownEventType: undefined });
    const formats = [formatOf(agreed.codec, agreed.sendType)];
    if (agreed.eventTypes.send !== undefined) formats.push(eventFormat(agreed.eventTypes.send));
    this.#agreed = agreed;
    // One section per section of the offer, with the same protocol and unwanted ones rejected (RFC 3264 section 6).
    return this.#write(
      sdp.media.map((section, at) =>
        at === index ? this.#audio(formats, agreed.direction, section.protocol) : { ...section, port: 0, formats: [] },
      ),
    );
  }

  #agree(
    media: SdpMedia,
    own: { receiveTypes: Map<number, CodecName>; ownEventType: number | undefined },
  ): NegotiatedAudio {
    const held = UNSPECIFIED.has(plainAddress(media.address ?? ''));
    const theirs = held ? 'inactive' : media.direction;
    const receiveTypes = new Map(own.receiveTypes);
    let chosen: { codec: Codec; sendType: number } | undefined;
    for (const format of media.formats) {
      const codec = this.#codecOf(format);
      if (codec === undefined) continue;
      receiveTypes.set(format.payloadType, codec.name);
      chosen ??= { codec, sendType: format.payloadType };
    }
    if (chosen === undefined) throw new SipError('SDP_UNUSABLE', 'the other side supports none of our codecs');
    if (!held && isIP(media.address ?? '') === 0)
      throw new SipError('SDP_UNUSABLE', 'the other side gave no address for its audio');
    const events = media.formats.find((format) => format.encoding.toLowerCase() === 'telephone-event');
    const receive = [own.ownEventType, events?.payloadType].filter((type) => type !== undefined);
    return {
      ...chosen,
      receiveTypes,
      remote: held ? undefined : { address: media.address as string, port: media.port },
      eventTypes: { receive: new Set(receive), send: events?.payloadType },
      direction: mirrored[theirs],
    };
  }

  #codecOf(format: SdpFormat): Codec | undefined {
    const name = this.#options.codecs.find((one) => one.toLowerCase() === format.encoding.toLowerCase());
    const codec = name && codecs[name];
    return codec !== undefined && codec.clockRate === format.clockRate && codec.channels === format.channels
      ? codec
      : undefined;
  }

  #audio(formats: readonly SdpFormat[], direction: Direction, protocol: string): SdpMedia {
    return {
      kind: 'audio',
      port: this.#options.port,
      protocol,
      formatList: formats.map((format) => format.payloadType).join(' '),
      address: undefined,
      direction,
      formats,
    };
  }

  #write(media: readonly SdpMedia[]): Buffer {
    const { id, version, origin } = this.#session;
    this.#session = { id, version: version + 1, origin };
    return writeSdp({ address: this.#options.address, session: this.#session, media });
  }
}

/** Returns the first audio section that uses plain RTP and is not rejected. */
function audioOf(sdp: Sdp): { media: SdpMedia; index: number } {
  const index = sdp.media.findIndex(
    (section) => section.kind === 'audio' && section.port > 0 && /^RTP\/AVPF?$/.test(section.protocol),
  );
  const media = sdp.media[index];
  if (media === undefined) throw new SipError('SDP_UNUSABLE', 'the session description has no audio over RTP');
  return { media, index };
}

function formatOf(codec: Codec, payloadType = codec.payloadType): SdpFormat {
  return { payloadType, encoding: codec.name, clockRate: codec.clockRate, channels: codec.channels, fmtp: codec.fmtp };
}

function eventFormat(payloadType: number): SdpFormat {
  return { payloadType, encoding: 'telephone-event', clockRate: 8000, channels: 1, fmtp: '0-15' };
}
