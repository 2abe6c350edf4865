/** AV1 in RTP, "RTP Payload Format For AV1" of the Alliance for Open Media, version 1.0. */
import type { RtpView } from '../rtp-view.js';
import type { DependencyDescriptors } from './dependency-descriptor.js';
import { FORWARDED_ONLY } from './forwarded-only.js';
import { EntryPoint, formatParameters, type PayloadFormat, type PayloadReader } from './payload-format.js';

/** Bits of the aggregation header (section 4.4). */
const CONTINUES = 0x80;
const NEW_SEQUENCE = 0x08;

/**
 * Reads the aggregation header and the dependency descriptor. Payloads have no numbers, so all receivers get them
 * unchanged.
 */
class Av1Reader implements PayloadReader {
  readonly headerLength = 0;
  temporalLayer = 0;
  spatialLayer = 0;
  endsLayer = false;
  switchesTo = -1;
  entryPoint: EntryPoint = EntryPoint.no;
  readonly #descriptors: DependencyDescriptors | undefined;

  constructor(descriptors: DependencyDescriptors | undefined) {
    this.#descriptors = descriptors;
  }

  /**
   * Refuses a packet without data, one that starts a sequence in the middle of a unit, and one with a malformed
   * descriptor.
   */
  read(view: RtpView): boolean {
    const { buffer, payloadStart, payloadEnd } = view;
    if (payloadEnd - payloadStart < 2) return false;
    const header = buffer[payloadStart]!;
    const startsSequence = (header & NEW_SEQUENCE) !== 0;
    if (startsSequence && (header & CONTINUES) !== 0) return false;
    if (!this.#readLayers(view)) return false;
    this.entryPoint = startsSequence ? EntryPoint.yes : EntryPoint.no;
    return true;
  }

  #readLayers(view: RtpView): boolean {
    const descriptors = this.#descriptors;
    if (descriptors?.id === undefined || !view.findExtension(descriptors.id)) {
      // Everybody needs a packet that tells no layer.
      this.spatialLayer = 0;
      this.temporalLayer = 0;
      this.switchesTo = -1;
      this.endsLayer = false;
      return true;
    }
    if (!descriptors.read(view.buffer, view.foundStart, view.foundLength)) return false;
    const { spatial, temporal, switchesTo } = descriptors.frame;
    this.spatialLayer = spatial;
    this.temporalLayer = temporal;
    this.switchesTo = switchesTo;
    this.endsLayer = descriptors.endsFrame;
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
  hasLayers: true,
  hasDescriptors: true,
  obstacle,
  rank: (parameters) => (obstacle(parameters) === undefined ? 1 : 0),
  createReader: (descriptors) => new Av1Reader(descriptors),
  createNumbering: () => undefined,
};
