// Local picture and sound: the camera and microphone if available, otherwise a substitute of the page.
import { type DeviceKind, openDevice } from '@bloom/client';

/** A camera or microphone, or its substitute until a person chooses a device. */
export interface CallSource {
  /** Opens the source. The first call returns media that is already open. */
  readonly open: (deviceId?: string) => Promise<MediaStreamTrack>;
  /** Metadata that the others read about the source: whether it is a substitute. */
  readonly metadata: () => { readonly generated: boolean };
  /** Stops media that was opened but never taken. */
  readonly stop: () => void;
}

/** The sources of a person's picture and sound. */
export interface CallMedia {
  readonly camera: CallSource;
  readonly microphone: CallSource;
  /** The unavailable devices in a sentence; null if everything is available. */
  readonly notice: string | null;
}

/** Settings of `openCallMedia`. */
export interface CallMediaOptions {
  /** False to ask for no device. Substitutes are used then. */
  readonly devices?: boolean;
  /** Media for a device that cannot be opened. Without it, the source fails until the person chooses a device. */
  readonly substitute?: Readonly<Record<DeviceKind, () => MediaStreamTrack>>;
}

const CONSTRAINTS = {
  camera: { width: { ideal: 1280 }, height: { ideal: 720 }, frameRate: { ideal: 24, max: 30 } },
  microphone: {},
};

interface Opened {
  readonly camera?: MediaStreamTrack | undefined;
  readonly microphone?: MediaStreamTrack | undefined;
  /** What is missing; empty if nothing is. */
  readonly missing: string;
}

/** Opens camera and microphone, both at once where possible, so that the person is asked only once. */
export async function openCallMedia({ devices = true, substitute }: CallMediaOptions = {}): Promise<CallMedia> {
  const { camera, microphone, missing }: Opened = devices ? await openDevices() : { missing: '' };
  const instead =
    substitute === undefined
      ? ''
      : missing.includes(' and ')
        ? ' They are generated instead.'
        : ' It is generated instead.';
  return {
    camera: sourceOf({ kind: 'camera', opened: camera, substitute: substitute?.camera }),
    microphone: sourceOf({ kind: 'microphone', opened: microphone, substitute: substitute?.microphone }),
    notice: missing === '' ? null : `${missing}.${instead}`,
  };
}

async function openDevices(): Promise<Opened> {
  try {
    const both = await navigator.mediaDevices.getUserMedia({ video: CONSTRAINTS.camera, audio: true });
    return { camera: both.getVideoTracks()[0], microphone: both.getAudioTracks()[0], missing: '' };
  } catch (error) {
    if (error instanceof Error && error.name === 'NotAllowedError') {
      return { missing: 'Camera and microphone cannot be used: the browser has no permission' };
    }
  }
  const kinds = ['camera', 'microphone'] as const;
  const opened = await Promise.allSettled(kinds.map((kind) => openDevice(kind, { constraints: CONSTRAINTS[kind] })));
  const [camera, microphone] = opened.map((result) => (result.status === 'fulfilled' ? result.value : undefined));
  const problems = opened.flatMap((result) => (result.status === 'rejected' ? [(result.reason as Error).message] : []));

  return { camera, microphone, missing: problems.length === 0 ? '' : `There is ${problems.join(', and ')}` };
}

interface SourceOptions {
  readonly kind: DeviceKind;
  readonly opened: MediaStreamTrack | undefined;
  readonly substitute: (() => MediaStreamTrack) | undefined;
}

function sourceOf({ kind, opened, substitute }: SourceOptions): CallSource {
  let generated = opened === undefined && substitute !== undefined;
  let waiting = opened;
  return {
    open: async (id) => {
      const first = waiting;
      waiting = undefined;
      if (id === undefined && first?.readyState === 'live') return first;
      if (id === undefined && generated && substitute !== undefined) return substitute();
      first?.stop();
      const device = await openDevice(kind, { ...(id === undefined ? {} : { id }), constraints: CONSTRAINTS[kind] });
      generated = false;
      return device;
    },
    metadata: () => ({ generated }),
    stop: () => waiting?.stop(),
  };
}
