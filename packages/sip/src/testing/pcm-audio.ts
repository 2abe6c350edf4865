import { decodeG711, encodeG711 } from '../media/g711.js';
import type { CallAudio } from '../media/media-port.js';

/** Audio as 8 kHz samples, 160 per 20 ms frame. */
export interface PcmAudio {
  /** Called every 20 ms; undefined for a missing frame. */
  received?: (samples: Int16Array | undefined) => void;
  /** Called every 20 ms; undefined means silence. */
  next?: () => Int16Array | undefined;
}

/** Decodes and encodes audio for calls that offer only PCMU and PCMA. */
export function pcmAudio(audio: PcmAudio): CallAudio {
  return {
    received: (frame, codec) =>
      audio.received?.(frame !== undefined && codec !== 'opus' ? decodeG711(codec, frame) : undefined),
    next: (codec) => {
      const samples = audio.next?.();
      return samples !== undefined && codec !== 'opus' ? encodeG711(codec, samples) : undefined;
    },
  };
}
