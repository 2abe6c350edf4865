import {
  acceptedCodecs,
  type CodecName,
  commonCodecs,
  formatParameters,
  isCodecName,
  type PayloadFormat,
  payloadFormat,
} from '@bloom/rtp';
import type { OfferedCodec, OfferedMedia } from './offer.js';

/** The one codec of an answered m-line, with the client's payload types. */
export interface ChosenCodec {
  name: CodecName;
  encodingName: string;
  payloadType: number;
  clockRate: number;
  channels?: number;
  /** Value of `a=fmtp`, echoed. */
  parameters: string;
  /** Offered feedback that we send or understand. */
  feedback: readonly string[];
  rtxPayloadType?: number;
  /** Payload type of packets with redundancy (RFC 2198), for clients that ask for it. */
  redPayloadType?: number;
}

/** Feedback types in the order of an answer. `transport-cc` is negotiated, so `goog-remb` is not. */
const FEEDBACK = ['ccm fir', 'nack', 'nack pli', 'transport-cc'] as const;

/**
 * Returns the codec in which a client must publish on this m-line; null if it offers no accepted codec. `required` is
 * the video codec enforced in the room. Otherwise `preferred` is chosen, or the first accepted codec in offer order;
 * one that has to be asked for only if the offer has no other, and with `commonOnly` never.
 */
export function choosePublishedCodec(
  media: OfferedMedia,
  required: CodecName | null,
  { commonOnly = false, preferred }: { commonOnly?: boolean; preferred?: CodecName | undefined } = {},
): ChosenCodec | null {
  const first = (allowed: readonly string[]): OfferedCodec | undefined =>
    media.codecs.find((codec) => {
      const format = formatOf(codec);
      return format !== undefined && allowed.includes(codec.name) && format.obstacle(codec.parameters) === undefined;
    });
  const codecs = commonCodecs(media.kind, required);
  const common = first(codecs.filter((name) => name === preferred)) ?? first(codecs);
  const chosen = common ?? (commonOnly ? undefined : first(acceptedCodecs(media.kind, required)));
  return chosen === undefined ? null : choose(media, chosen);
}

/**
 * Returns the codec in which a client receives a track published as `name`; null if it offers none. With `redundancy`
 * its redundant form is chosen wherever the offer has it, and without only if the client prefers it.
 */
export function chooseReceivedCodec(
  media: OfferedMedia,
  name: CodecName,
  { redundancy = false } = {},
): ChosenCodec | null {
  const { rank } = payloadFormat(name);
  const [best] = media.codecs
    .filter((codec) => codec.name === name && formatOf(codec) !== undefined)
    .toSorted((a, b) => rank(b.parameters) - rank(a.parameters));
  return best === undefined ? null : choose(media, best, redundancy);
}

/** Returns the format of an offered codec; undefined if rooms do not accept it. */
function formatOf({ name, clockRate }: OfferedCodec): PayloadFormat | undefined {
  if (!isCodecName(name)) return undefined;
  const format = payloadFormat(name);
  return format.clockRate === clockRate ? format : undefined;
}

function choose(media: OfferedMedia, codec: OfferedCodec, redundancy = false): ChosenCodec {
  const rtx = media.codecs.find(
    (c) => c.name === 'rtx' && formatParameters(c.parameters).get('apt') === String(codec.payloadType),
  );
  const red = media.kind === 'audio' ? redundancyOf(media, codec, redundancy) : undefined;
  return {
    name: codec.name as CodecName,
    encodingName: codec.encodingName,
    payloadType: codec.payloadType,
    clockRate: codec.clockRate,
    ...(codec.channels === undefined ? {} : { channels: codec.channels }),
    parameters: codec.parameters,
    feedback: FEEDBACK.filter((value) => codec.feedback.includes(value)),
    ...(rtx === undefined ? {} : { rtxPayloadType: rtx.payloadType }),
    ...(red === undefined ? {} : { redPayloadType: red.payloadType }),
  };
}

/**
 * Returns the redundant form of a codec of sound, wherever it is or if the client prefers it. Browsers list it after
 * the codec, which asks for nothing: the answers to Jellyfish clients must stay as they were.
 */
function redundancyOf({ codecs }: OfferedMedia, codec: OfferedCodec, anywhere: boolean): OfferedCodec | undefined {
  return codecs
    .slice(0, anywhere ? codecs.length : codecs.indexOf(codec))
    .find(
      ({ name, clockRate, channels, parameters }) =>
        name === 'red' &&
        clockRate === codec.clockRate &&
        channels === codec.channels &&
        parameters.split('/').every((payloadType) => payloadType === String(codec.payloadType)),
    );
}
