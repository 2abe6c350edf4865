// Local video and audio: camera and microphone if available, otherwise generated media.
import { type DeviceKind, openDevice } from '@bloom/client';
import { generatedPicture } from './generated-picture.js';
import { generatedSound } from './generated-sound.js';

export type Wish = 'camera' | 'generated';

/** A camera or microphone, or generated media until a person chooses a device. */
export interface LocalSource {
  /** Opens the source. The first call returns media that is already open. */
  readonly open: (deviceId?: string) => Promise<MediaStreamTrack>;
  /** Metadata that the others read about the source. */
  readonly metadata: () => { readonly generated: boolean };
  /** Stops media that was opened but never taken. */
  readonly stop: () => void;
}

export interface LocalMedia {
  readonly camera: LocalSource;
  readonly microphone: LocalSource;
  /** The unavailable devices in a sentence; null if everything is available. */
  readonly notice: string | null;
}

const CONSTRAINTS = {
  camera: { width: { ideal: 1280 }, height: { ideal: 720 }, frameRate: { ideal: 24, max: 30 } },
  microphone: {},
};

interface Devices {
  readonly camera?: MediaStreamTrack | undefined;
  readonly microphone?: MediaStreamTrack | undefined;
  readonly notice: string | null;
}

async function openDevices(): Promise<Devices> {
  try {
    // Open both at once, so that the person is asked only once.
    const both = await navigator.mediaDevices.getUserMedia({ video: CONSTRAINTS.camera, audio: true });
    return { camera: both.getVideoTracks()[0], microphone: both.getAudioTracks()[0], notice: null };
  } catch (error) {
    if (error instanceof Error && error.name === 'NotAllowedError') {
      return {
        notice: 'Camera and microphone cannot be used: the browser has no permission. They are generated instead.',
      };
    }
  }
  const kinds = ['camera', 'microphone'] as const;
  const opened = await Promise.allSettled(kinds.map((kind) => openDevice(kind, { constraints: CONSTRAINTS[kind] })));
  const [camera, microphone] = opened.map((result) => (result.status === 'fulfilled' ? result.value : undefined));
  const problems = opened.flatMap((result) => (result.status === 'rejected' ? [(result.reason as Error).message] : []));
  const notice = problems.length === 0 ? null : `There is ${problems.join(', and ')}. It is generated instead.`;

  return { camera, microphone, notice };
}

interface SourceOptions {
  readonly kind: DeviceKind;
  readonly opened: MediaStreamTrack | undefined;
  readonly generate: () => MediaStreamTrack;
}

function sourceOf({ kind, opened, generate }: SourceOptions): LocalSource {
  let generated = opened === undefined;
  let waiting: MediaStreamTrack | undefined = opened ?? generate();
  return {
    open: async (id) => {
      const first = waiting;
      waiting = undefined;
      if (id === undefined && first?.readyState === 'live') return first;
      if (id === undefined && generated) return generate();
      first?.stop();
      const device = await openDevice(kind, { ...(id === undefined ? {} : { id }), constraints: CONSTRAINTS[kind] });
      generated = false;
      return device;
    },
    metadata: () => ({ generated }),
    stop: () => waiting?.stop(),
  };
}

export async function openLocalMedia(wish: Wish, name: string): Promise<LocalMedia> {
  const { camera, microphone, notice }: Devices = wish === 'camera' ? await openDevices() : { notice: null };
  return {
    camera: sourceOf({ kind: 'camera', opened: camera, generate: () => generatedPicture(name) }),
    microphone: sourceOf({ kind: 'microphone', opened: microphone, generate: generatedSound }),
    notice,
  };
}
