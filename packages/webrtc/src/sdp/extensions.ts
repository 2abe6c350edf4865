import { type CodecName, DESCRIPTOR_URI, payloadFormat } from '@bloom/rtp';
import type { OfferedMedia } from './offer.js';

/** The client's header extension ids of one m-line (RFC 8285). Absent when not negotiated. */
export interface AgreedExtensions {
  mid?: number;
  rid?: number;
  repairedRid?: number;
  transportCc?: number;
  audioLevel?: number;
  /** The dependency descriptor. */
  dependencies?: number;
}

export const EXTENSION_URIS: Readonly<Record<keyof AgreedExtensions, string>> = {
  mid: 'urn:ietf:params:rtp-hdrext:sdes:mid',
  rid: 'urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id',
  repairedRid: 'urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id',
  transportCc: 'http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01',
  audioLevel: 'urn:ietf:params:rtp-hdrext:ssrc-audio-level',
  dependencies: DESCRIPTOR_URI,
};

const NAMES = Object.keys(EXTENSION_URIS) as (keyof AgreedExtensions)[];
/** Largest id of the one-byte header form, which we write except around a long dependency descriptor. */
const MAX_ID = 14;

/**
 * Returns the offered extensions that we support. `mid`, `rid` and `repairedRid` are accepted on every m-line that
 * offers them: Chromium fails a later simulcast publication if its first video m-line was answered without them.
 * `codec`: the one that is sent on the m-line.
 */
export function chooseExtensions(
  media: OfferedMedia,
  { audioLevel, codec }: { audioLevel: boolean; codec?: CodecName | undefined },
): AgreedExtensions {
  // Chromium would add descriptors to packets of every codec.
  const dependencies = codec !== undefined && payloadFormat(codec).hasDescriptors;
  const agreed: AgreedExtensions = {};
  for (const { id, uri } of media.extensions) {
    const name = NAMES.find((candidate) => EXTENSION_URIS[candidate] === uri);
    if (name === undefined || id < 1 || id > MAX_ID || agreed[name] !== undefined) continue;
    if (name === 'audioLevel' && (!audioLevel || media.kind !== 'audio')) continue;
    // The long descriptors of key frames need the two-byte form.
    if (name === 'dependencies' && !(dependencies && media.allowsMixedExtensions)) continue;
    agreed[name] = id;
  }
  return agreed;
}
