import { decodeG711, encodeG711 } from './g711.js';
import type { CallAudio } from './media-port.js';

/** Sound as 8 kHz samples, 160 in a frame of 20 ms. */
export interface PcmAudio {
  /** Every 20 ms; undefined: nothing came for this moment. */
  received?: (samples: Int16Array | undefined) => void;
  /** Asked every 20 ms; undefined is silence. */
  next?: () => Int16Array | undefined;
}

/** For calls that offer PCMU and PCMA only: decodes and encodes on the way. */
export function pcmAudio(audio: PcmAudio): CallAudio {
  return {
    received: (frame, codec) => audio.received?.(frame && codec !== 'opus' ? decodeG711(codec, frame) : undefined),
    next: (codec) => {
      const samples = audio.next?.();
      return samples && codec !== 'opus' ? encodeG711(codec, samples) : undefined;
    },
  };
}
