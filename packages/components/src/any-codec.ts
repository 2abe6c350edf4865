/** The option `anyCodec`: streams and recordings that take VP8 and VP9 beside H.264. */
import { VIDEO_CODECS, type VideoCodec } from '@bloom/rooms';

/** Options of a stream or a recording, as the caller sent them. */
interface Asked {
  readonly anyCodec?: unknown;
}

/** Returns the codecs that a room may require, or leave open, for a component with these options. */
export function videoCodecsOf({ anyCodec }: Asked): readonly VideoCodec[] {
  return anyCodec === true ? VIDEO_CODECS : ['h264'];
}

/** Returns the property for the API: absent unless the option is set, so that older SDKs see what they know. */
export function anyCodecProperty({ anyCodec }: Asked): { anyCodec?: true } {
  return anyCodec === true ? { anyCodec: true } : {};
}
