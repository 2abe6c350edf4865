/** Why a camera, microphone or screen cannot be used. */
export type DeviceErrorCode =
  /** The person, the system or the page's policy does not allow it. */
  | 'REFUSED'
  /** No device exists, or none of the wanted kind. */
  | 'NOT_FOUND'
  /** Another program is using it. */
  | 'IN_USE'
  /** Browsers allow devices only on pages from localhost or over HTTPS. */
  | 'INSECURE_PAGE'
  | 'FAILED';

/** Reason why a device or the screen could not be opened. */
export class DeviceError extends Error {
  override readonly name = 'DeviceError';

  constructor(
    readonly code: DeviceErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** Kind of a device. */
export type DeviceKind = 'camera' | 'microphone';

/** A camera or microphone of the machine. */
export interface Device {
  /** Empty until the person has allowed a device of this kind. */
  readonly id: string;
  readonly kind: DeviceKind;
  /** Empty as long as the id is. */
  readonly label: string;
}

const REASONS: Readonly<Record<string, readonly [DeviceErrorCode, string]>> = {
  NotAllowedError: ['REFUSED', 'the browser has no permission'],
  SecurityError: ['REFUSED', 'the page may not use it'],
  NotFoundError: ['NOT_FOUND', 'none was found'],
  OverconstrainedError: ['NOT_FOUND', 'none was found that fits'],
  NotReadableError: ['IN_USE', 'another program has it'],
  AbortError: ['IN_USE', 'it could not be started'],
};
const MEDIA_KIND = { camera: 'videoinput', microphone: 'audioinput' } as const;
const STORAGE_KEY = 'bloom.device.';

/** Returns the cameras and microphones of the machine. */
export async function listDevices(): Promise<Device[]> {
  const found = (await navigator.mediaDevices?.enumerateDevices()) ?? [];
  return found.flatMap(({ kind, deviceId: id, label }): Device[] => {
    if (kind === 'videoinput') return [{ id, kind: 'camera', label }];
    return kind === 'audioinput' ? [{ id, kind: 'microphone', label }] : [];
  });
}

/** Callbacks that watch the devices. Browsers do not report that a permission has revealed the devices' names. */
const watchers = new Set<() => void>();

/**
 * Calls `changed` when a device is plugged in or out, and when `openDevice` has opened one, which makes browsers show
 * ids and names. Returns the function that stops watching.
 */
export function watchDevices(changed: (devices: Device[]) => void): () => void {
  const report = (): void => void listDevices().then(changed);
  watchers.add(report);
  navigator.mediaDevices?.addEventListener('devicechange', report);
  return () => {
    watchers.delete(report);
    navigator.mediaDevices?.removeEventListener('devicechange', report);
  };
}

/**
 * Opens a camera or microphone: the one with the id, otherwise the last chosen one, otherwise the system's choice. A
 * given id is remembered.
 * @throws DeviceError
 */
export async function openDevice(
  kind: DeviceKind,
  { id, constraints = {} }: { id?: string; constraints?: MediaTrackConstraints } = {},
): Promise<MediaStreamTrack> {
  const openOne = (which: MediaTrackConstraints): Promise<MediaStream> => {
    const wanted = { ...(kind === 'camera' ? CAMERA : {}), ...constraints, ...which };
    return open(kind, (devices) => devices.getUserMedia(kind === 'camera' ? { video: wanted } : { audio: wanted }));
  };
  // The id is empty if the browser has not revealed it yet.
  const chosen = id === '' ? undefined : id;
  const remembered = chosen ?? stored(kind);
  // Chromium prefers the system's choice to an id that is only `ideal`.
  const stream =
    remembered === undefined
      ? await openOne({})
      : await openOne({ deviceId: { exact: remembered } }).catch((error: unknown) => {
          if (chosen === undefined && error instanceof DeviceError && error.code === 'NOT_FOUND') return openOne({});
          throw error;
        });
  if (chosen !== undefined) store(kind, chosen);
  for (const report of watchers) report();
  return stream.getTracks()[0] as MediaStreamTrack;
}

const CAMERA: MediaTrackConstraints = {
  width: { ideal: 1280 },
  height: { ideal: 720 },
  frameRate: { ideal: 30, max: 30 },
};

/**
 * Asks the person for a screen, window or tab.
 * @throws DeviceError `REFUSED` also when the person closes the dialog.
 */
export async function openScreen(
  options: DisplayMediaStreamOptions = { video: true, audio: true },
): Promise<MediaStreamTrack[]> {
  const stream = await open('screen', (devices) => devices.getDisplayMedia(options));
  const tracks = stream.getTracks();
  // Prefer sharpness to smoothness.
  for (const track of tracks) if (track.kind === 'video') track.contentHint = 'detail';
  return tracks;
}

async function open(what: string, ask: (devices: MediaDevices) => Promise<MediaStream>): Promise<MediaStream> {
  if (navigator.mediaDevices === undefined) {
    throw new DeviceError('INSECURE_PAGE', `no ${what}: browsers give it only to pages from localhost or over HTTPS`);
  }
  try {
    return await ask(navigator.mediaDevices);
  } catch (cause) {
    const [code, reason] =
      REASONS[cause instanceof Error ? cause.name : ''] ?? (['FAILED', 'it did not start'] as const);
    throw new DeviceError(code, `no ${what}: ${reason}`, { cause });
  }
}

/** Pages without storage (private windows, sandboxed frames) remember nothing. */
function stored(kind: DeviceKind): string | undefined {
  try {
    return localStorage.getItem(STORAGE_KEY + MEDIA_KIND[kind]) ?? undefined;
  } catch {
    return undefined;
  }
}

function store(kind: DeviceKind, id: string): void {
  try {
    localStorage.setItem(STORAGE_KEY + MEDIA_KIND[kind], id);
  } catch {
    // See `stored`.
  }
}
