import type { FrameAssembler, PayloadFormat } from './payload-format.js';

const NO_FRAMES: FrameAssembler = { needsKeyframe: false, heldBytes: 0, push: () => [], gap: () => {} };

/**
 * Parts of the formats that clients exchange and no component reads or produces: a component names the codecs that it
 * takes, and these are never among them.
 */
export const FORWARDED_ONLY: Pick<
  PayloadFormat,
  'onRequest' | 'createAssembler' | 'createAnnouncedParts' | 'packetise'
> = {
  onRequest: true,
  createAssembler: () => NO_FRAMES,
  createAnnouncedParts: () => undefined,
  packetise: () => ({ key: false, payloads: [] }),
};
