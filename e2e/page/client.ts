// A page of an application that uses @bloom/client. Tests call `window.application`.
import {
  type ConnectOptions,
  type DeviceError,
  type DeviceKind,
  listDevices,
  openDevice,
  RoomClient,
  type LocalTrack,
  type PublishOptions,
  type RoomClientErrorCode,
  type Seat,
} from '@bloom/client';
import { Encryption, keyFromPassphrase } from '@bloom/client/encryption';
import type { Pause } from '../../apps/bench/src/network/pauses.js';
import type { PictureOptions } from './driver-api.js';
import { FrameWatcher } from './frame-watcher.js';
import { createPicture, createTone } from './picture.js';
import { Listener } from './sound.js';

export interface SeenTrack {
  readonly id: string;
  readonly peerId: string;
  readonly metadata: unknown;
  readonly variant: string | null;
  readonly frames: number;
  readonly width: number;
  readonly colour: string;
  readonly unavailable: string | null;
  readonly encrypted: boolean;
  readonly firstFrameAt: number | null;
  /** Longest pause between frames since `resetPauses`, in milliseconds. */
  readonly pauseMs: number;
  /** Pauses of at least 150 ms since then. */
  readonly pauses: readonly Pause[];
}

/** How the picture of the only other person moves, over any connection. */
export interface Standstill {
  /** Longest pause between two frames since `resetPauses`, in milliseconds. */
  readonly longestMs: number;
  readonly sinceLastMs: number;
}

const client = new RoomClient();
let encryption: Encryption | undefined;
let lastFrameAt = performance.now();
let longestMs = 0;
const watchers = new Map<string, { watcher: FrameWatcher; firstFrameAt: number | null }>();
const listeners = new Map<string, Listener>();
const published: LocalTrack[] = [];
const opened: MediaStreamTrack[] = [];
/** Senders of video, of the last connection last. */
const senders = new Map<RTCPeerConnection, RTCRtpSender[]>();
const add = RTCPeerConnection.prototype.addTransceiver;
RTCPeerConnection.prototype.addTransceiver = function addTransceiver(this: RTCPeerConnection, media, init) {
  const transceiver = add.call(this, media, init);
  const own = senders.get(this) ?? [];
  senders.set(this, own);
  if (init?.direction === 'sendonly' && transceiver.receiver.track.kind === 'video') own.push(transceiver.sender);
  return transceiver;
};
const log: string[] = [];

const now = (): number => performance.timeOrigin + performance.now();

for (const event of ['connected', 'reconnecting', 'peerJoined', 'peerUpdated', 'peerLeft', 'trackRemoved'] as const) {
  client.on(event, (...[subject]: unknown[]) => {
    log.push(
      typeof subject === 'object' && subject !== null && 'id' in subject ? `${event} ${String(subject.id)}` : event,
    );
  });
}
client.on('unpublished', ({ kind }) => log.push(`unpublished ${kind}`));
client.on('data', ({ label, from, data }) => log.push(`data ${label} ${from} ${String(data)}`));
client.on('message', (topic, data) => log.push(`message ${topic} ${JSON.stringify(data)}`));
client.on('ended', ({ code, message }) => log.push(`ended ${code}: ${message}`));
client.on('trackReady', ({ id, media }) => {
  if (media?.kind === 'audio') listeners.set(id, new Listener(media));
  if (media?.kind !== 'video') return;
  watchers.get(id)?.watcher.close();
  const seen = { firstFrameAt: null as number | null };
  const watcher = new FrameWatcher(media, {
    first: () => (seen.firstFrameAt = now()),
    size: () => undefined,
    colour: () => undefined,
    frame: () => {
      longestMs = Math.max(longestMs, performance.now() - lastFrameAt);
      lastFrameAt = performance.now();
    },
  });
  watchers.set(id, Object.assign(seen, { watcher }));
});

function renewal(): Pick<ConnectOptions, 'renew'> {
  const { renew } = window;
  return renew === undefined ? {} : { renew: ({ code }) => renew(code) };
}

const application = {
  client,
  log,

  /** Returns the error's code, or undefined. The test renews a lost seat if it offers to. */
  connect: (options: Seat & { metadata?: unknown }) =>
    client.connect({ ...options, ...renewal(), ...(encryption === undefined ? {} : { encryption }) }).then(
      () => undefined,
      (error: { code: string }) => error.code,
    ),
  /** Encrypts the call that begins next, or changes the key of the running one. */
  async encrypt(passphrase: string): Promise<void> {
    const key = await keyFromPassphrase(passphrase, 'a room');
    if (encryption === undefined) encryption = new Encryption({ key });
    else encryption.setKey(key);
  },

  async publish(picture: Omit<PictureOptions, 'kind'>, options: PublishOptions = {}, reopens = false): Promise<number> {
    const open = (): MediaStreamTrack => {
      const { track } = createPicture({ kind: 'picture', ...picture });
      opened.push(track);
      return track;
    };
    const reopen = reopens ? { reopen: () => Promise.resolve(open()) } : {};
    return published.push(await client.publish(open(), { ...options, ...reopen })) - 1;
  },
  /** Shows another colour from now on. */
  async recolour(index: number, colour: PictureOptions['colour']): Promise<void> {
    await published[index]?.replace(createPicture({ kind: 'picture', colour }).track);
  },
  async publishTone(): Promise<number> {
    return published.push(await client.publish(createTone({ kind: 'tone', hz: 440 }).track)) - 1;
  },
  local: (index: number): LocalTrack => published[index] as LocalTrack,
  /** Reports the end of the open device, as a browser does when it is unplugged. */
  unplug: (): void => void opened.at(-1)?.dispatchEvent(new Event('ended')),
  /** Opens a device of the machine. Returns which one, or the reason for having none. */
  openDevice: (kind: DeviceKind, id?: string): Promise<string> =>
    openDevice(kind, id === undefined ? {} : { id }).then(
      (media) => {
        media.stop();
        return media.getSettings().deviceId ?? '';
      },
      ({ code }: DeviceError) => code,
    ),
  listDevices,

  /** Open devices. */
  devices: (): number => opened.filter(({ readyState }) => readyState === 'live').length,

  tracks: (): SeenTrack[] =>
    client.peers.flatMap(({ tracks }) =>
      tracks.map(({ id, peerId, metadata, variant, unavailable, encrypted }) => {
        const seen = watchers.get(id);
        const { frames = 0, width = 0, colour = 'black', maxGapMs = 0 } = seen?.watcher.report() ?? {};
        const firstFrameAt = seen?.firstFrameAt ?? null;
        const pauses = seen?.watcher.pausesUntil(performance.now()) ?? [];
        const pictures = { frames, width, colour, firstFrameAt, pauseMs: maxGapMs, pauses };
        return { id, peerId, metadata, variant, unavailable, encrypted, ...pictures };
      }),
    ),
  /** Returns the loudest frequency of each sound that is heard, and its level (0..255). */
  sounds: (): { hz: number; level: number }[] => [...listeners.values()].map((one) => one.loudest()),
  standstill: (): Standstill => ({ longestMs, sinceLastMs: performance.now() - lastFrameAt }),
  resetPauses: () => {
    longestMs = 0;
    for (const { watcher } of watchers.values()) watcher.resetGap();
  },

  /** Returns the bytes of media sent on each m-line with video of the last connection. Probes carry none. */
  sent: (): Promise<number[]> =>
    Promise.all(
      [...senders.values()].at(-1)!.map(async (sender) => {
        let bytes = 0;
        for (const entry of (await sender.getStats()).values()) {
          if (entry.type === 'outbound-rtp') bytes += Number(entry.bytesSent);
        }
        return bytes;
      }),
    ),
  /** Returns the codec of each track that is sent or received, and why others are not. */
  async codecs(): Promise<(string | null)[]> {
    const { tracks } = await client.stats();
    const unavailable = client.peers.flatMap((peer) => peer.tracks.map((track) => track.unavailable));
    return [...tracks.map(({ codec }) => codec), ...unavailable.filter((reason) => reason !== null)];
  },

  /** Returns how long bytes of the first video keep coming, in ms, until none come for half a second. */
  async silentAfter(): Promise<number> {
    const begun = now();
    let [last, seen] = [begun, -1];
    while (now() - last < 500) {
      const { tracks } = await client.stats();
      const bytes = tracks.find(({ kind, direction }) => kind === 'video' && direction === 'received')?.bytes ?? 0;
      if (bytes !== seen) last = now();
      seen = bytes;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return last - begun;
  },
  /** Returns the time until the first video moves, in ms. */
  async movesAfter(): Promise<number> {
    const begun = now();
    const [watched] = watchers.values();
    await watched?.watcher.after(1);
    return now() - begun;
  },

  /** Shows the first video in an element of this height; 0 moves it off the screen. */
  show(height: number): void {
    let element = document.querySelector<HTMLVideoElement>('#shown');
    if (element === null) {
      const [track] = client.peers.flatMap(({ tracks }) => tracks).filter(({ media }) => media?.kind === 'video');
      element = document.createElement('video');
      Object.assign(element, {
        id: 'shown',
        muted: true,
        autoplay: true,
        srcObject: new MediaStream([track?.media as MediaStreamTrack]),
      });
      document.body.append(element);
      client.watch(track?.id ?? '', element);
    }
    element.style.cssText = height > 0 ? `height: ${height}px` : 'position: absolute; top: 20000px; height: 500px';
  },
};

export type Application = typeof application;

declare global {
  interface Window {
    application: Application;
    /** Asks the test for another seat. */
    renew?: (code: RoomClientErrorCode) => Promise<Seat | null>;
  }
}

window.application = application;
