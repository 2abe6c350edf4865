/** AV1 in RTP, "RTP Payload Format For AV1" of the Alliance for Open Media, version 1.0. */
import type { RtpView } from '../rtp-view.js';
import { FORWARDED_ONLY } from './forwarded-only.js';
import { EntryPoint, formatParameters, type PayloadFormat, type PayloadReader } from './payload-format.js';

/** Bits of the aggregation header (section 4.4). */
const CONTINUES = 0x80;
const NEW_SEQUENCE = 0x08;

/** Reads the aggregation header. Payloads have no numbers, so all receivers get them unchanged. */
class Av1Reader implements PayloadReader {
  readonly temporalLayer = 0;
  readonly spatialLayer = 0;
  readonly endsLayer = false;
  readonly switchesUp = false;
  readonly headerLength = 0;
  entryPoint: EntryPoint = EntryPoint.no;

  /** Refuses a packet without data, and one that starts a sequence in the middle of a unit. */
  read({ buffer, payloadStart, payloadEnd }: RtpView): boolean {
    if (payloadEnd - payloadStart < 2) return false;
    const header = buffer[payloadStart]!;
    const startsSequence = (header & NEW_SEQUENCE) !== 0;
    if (startsSequence && (header & CONTINUES) !== 0) return false;
    this.entryPoint = startsSequence ? EntryPoint.yes : EntryPoint.no;
    return true;
  }

  write(): number {
    return 0;
  }
}

/** Every decoder has the main profile (section 7.1); it is the default (section 7.2.3). */
function obstacle(parameters: string): string | undefined {
  const profile = formatParameters(parameters).get('profile') ?? '0';

  return profile === '0' ? undefined : `profile ${profile}`;
}

export const AV1: PayloadFormat = {
  ...FORWARDED_ONLY,
  kind: 'video',
  mimeType: 'video/AV1',
  label: 'AV1 of the main profile',
  clockRate: 90_000,
  offered: { payloadType: 102, rtxPayloadType: 103, parameters: '' },
  reordersPictures: false,
  hasLayers: false,
  obstacle,
  rank: (parameters) => (obstacle(parameters) === undefined ? 1 : 0),
  createReader: () => new Av1Reader(),
  createNumbering: () => undefined,
};
