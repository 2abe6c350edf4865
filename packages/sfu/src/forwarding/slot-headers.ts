import { OutboundHeader } from '@bloom/rtp';
import type { OutboundSlot } from '../media-engine.js';

/** Longest mid that fits into a one-byte header extension. */
const MAX_MID = 16;

/** Headers of the packets of one slot, as its client has negotiated them. */
export interface SlotHeaders {
  readonly full: OutboundHeader;
  /** Without the mid, for a client that knows the SSRC. */
  readonly plain: OutboundHeader;
  /** Header of retransmissions; undefined without a stream for them. */
  readonly rtx: OutboundHeader | undefined;
}

export function slotHeaders({ ssrc, rtxSsrc, kind, codec, extensions, mid }: OutboundSlot): SlotHeaders {
  const extensionIds = {
    transportCc: codec.feedback.includes('transport-cc') ? oneByteId(extensions.transportCc) : undefined,
    audioLevel: kind === 'audio' ? oneByteId(extensions.audioLevel) : undefined,
    dependencies: oneByteId(extensions.dependencies),
  };
  const { payloadType, rtxPayloadType } = codec;
  const full = { mid: mid.length <= MAX_MID ? oneByteId(extensions.mid) : undefined, ...extensionIds };
  return {
    full: new OutboundHeader({ ssrc, payloadType, extensionIds: full, mid }),
    plain: new OutboundHeader({ ssrc, payloadType, extensionIds }),
    rtx:
      rtxPayloadType === undefined
        ? undefined
        : new OutboundHeader({ ssrc: rtxSsrc, payloadType: rtxPayloadType, extensionIds: full, mid }),
  };
}

/** Returns the id if it fits into a one-byte header extension. */
function oneByteId(id: number | undefined): number | undefined {
  return id !== undefined && id >= 1 && id <= 14 ? id : undefined;
}
