import type { EndpointTrack } from '@bloom/rooms';
import { type ChosenCodec, chooseReceivedCodec, type OfferedMedia } from '@bloom/webrtc';

/** The codecs of a track's encodings. */
interface TrackCodecs {
  codec: EndpointTrack['codec'];
  fallback?: EndpointTrack['fallback'] | undefined;
}

/**
 * Returns the codec in which a client receives a track: the track's own if the m-line has it, else that of its
 * fallback; null if the m-line has neither. `redundancy`: see `chooseReceivedCodec`.
 */
export function chooseTrackCodec(
  line: OfferedMedia,
  { codec, fallback }: TrackCodecs,
  options: { redundancy?: boolean } = {},
): ChosenCodec | null {
  const first = chooseReceivedCodec(line, codec, options);
  return first === null && fallback !== undefined ? chooseReceivedCodec(line, fallback, options) : first;
}
