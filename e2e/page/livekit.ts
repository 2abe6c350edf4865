// A page of an application that uses the unmodified livekit-client. Tests call `window.livekit`.
import {
  ConnectionError,
  ConnectionErrorReason,
  type DataPublishOptions,
  type LocalTrackPublication,
  type RemoteTrack,
  type RemoteTrackPublication,
  Room,
  RoomEvent,
  type RoomOptions,
  Track,
  type TrackPublishOptions,
  type VideoQuality,
} from 'livekit-client';
import type { PictureOptions } from './driver-api.js';
import { FrameWatcher } from './frame-watcher.js';
import { createPicture, createTone } from './picture.js';
import { Listener } from './sound.js';

export interface SeenPublication {
  readonly sid: string;
  readonly identity: string;
  readonly kind: string;
  readonly source: string;
  readonly name: string;
  readonly muted: boolean;
  readonly simulcast: boolean;
  readonly subscribed: boolean;
  readonly frames: number;
  readonly maxGapMs: number;
  readonly width: number;
  readonly colour: string;
}

export interface SeenParticipant {
  readonly sid: string;
  readonly identity: string;
  readonly name: string;
  readonly kind: number;
  readonly metadata: string;
  readonly attributes: Readonly<Record<string, string>>;
}

let room = new Room();
const watchers = new Map<string, FrameWatcher>();
const heard = new Map<string, Listener>();
const published: LocalTrackPublication[] = [];
const log: string[] = [];

function describe(subject: unknown): string {
  if (typeof subject !== 'object' || subject === null) return String(subject);
  if ('identity' in subject) return String(subject.identity);
  if ('trackSid' in subject) return String(subject.trackSid);

  return subject instanceof Uint8Array ? new TextDecoder().decode(subject) : '';
}

function watch(track: RemoteTrack, sid: string): void {
  if (track.kind === Track.Kind.Video) {
    watchers.get(sid)?.close();
    const nothing = (): void => undefined;
    watchers.set(sid, new FrameWatcher(track.mediaStreamTrack, { first: nothing, size: nothing, colour: nothing }));
    return;
  }
  heard.set(sid, new Listener(track.mediaStreamTrack));
}

function listen(): void {
  for (const event of Object.values(RoomEvent)) {
    room.on(event as RoomEvent.Connected, (...subjects: unknown[]) => {
      log.push([event, ...subjects.map(describe)].join(' ').trim());
    });
  }
  room.on(RoomEvent.DataReceived, (...[payload, participant, kind, topic]) => {
    log.push(`data ${participant?.identity} ${kind} ${topic} ${new TextDecoder().decode(payload)}`);
  });
  room.registerTextStreamHandler('text', async (reader, { identity }) => {
    const text = await reader.readAll();
    log.push(`text ${identity} ${text.length} ${text.slice(0, 20)}`);
  });
  room.registerByteStreamHandler('bytes', async (reader, { identity }) => {
    const chunks = await reader.readAll();
    log.push(`bytes ${identity} ${chunks.reduce((sum, chunk) => sum + chunk.length, 0)}`);
  });
  room.registerRpcMethod('greet', ({ callerIdentity, payload }) => Promise.resolve(`${payload}, ${callerIdentity}`));
  room.on(RoomEvent.TrackSubscribed, (track, publication) => watch(track, publication.trackSid));
  room.on(RoomEvent.TrackUnsubscribed, (_track, publication) => {
    watchers.get(publication.trackSid)?.close();
    watchers.delete(publication.trackSid);
    heard.get(publication.trackSid)?.close();
    heard.delete(publication.trackSid);
  });
}

const livekit = {
  log,

  /** Returns undefined, or the name, status and text of the error. */
  async connect(url: string, token: string, options: RoomOptions = {}): Promise<string | undefined> {
    room = new Room(options);
    listen();
    try {
      await room.connect(url, token);
      return undefined;
    } catch (error) {
      if (!(error instanceof ConnectionError)) throw error;
      return `${ConnectionErrorReason[error.reason]} ${error.status ?? ''} ${error.message}`;
    }
  },
  disconnect: () => room.disconnect(),
  room: () => room,
  own: () => ({ sid: room.localParticipant.sid, identity: room.localParticipant.identity, room: room.name }),

  async publish(picture: Omit<PictureOptions, 'kind'>, options: TrackPublishOptions = {}): Promise<number> {
    const { track } = createPicture({ kind: 'picture', ...picture });
    return (
      published.push(await room.localParticipant.publishTrack(track, { source: Track.Source.Camera, ...options })) - 1
    );
  },
  async publishTone(hz: number): Promise<number> {
    const { track } = createTone({ kind: 'tone', hz });
    return published.push(await room.localParticipant.publishTrack(track, { source: Track.Source.Microphone })) - 1;
  },
  publishData: (text: string, options: DataPublishOptions) =>
    room.localParticipant.publishData(new TextEncoder().encode(text), options),
  sendText: (text: string, topic: string) => room.localParticipant.sendText(text, { topic }),
  sendBytes: (bytes: number, topic: string) =>
    room.localParticipant.sendFile(new File([new Uint8Array(bytes).fill(7)], 'file'), { topic }),
  callRpc: (destinationIdentity: string, payload: string): Promise<string> =>
    room.localParticipant.performRpc({ destinationIdentity, method: 'greet', payload }),

  count: (): number => published.length,
  mayPublish: (): boolean => room.localParticipant.permissions?.canPublish ?? true,
  setQuality(identity: string, quality: VideoQuality): void {
    const camera = room.remoteParticipants.get(identity)?.getTrackPublication(Track.Source.Camera);
    (camera as RemoteTrackPublication).setVideoQuality(quality);
  },
  setSubscribed(identity: string, subscribed: boolean): void {
    const camera = room.remoteParticipants.get(identity)?.getTrackPublication(Track.Source.Camera);
    (camera as RemoteTrackPublication).setSubscribed(subscribed);
  },
  /** Returns how many packets a published picture has sent, by layer. */
  async layersSent(index: number): Promise<Record<string, number>> {
    const report = await published[index]?.track?.getRTCStatsReport();
    const sent: Record<string, number> = {};
    for (const stats of report?.values() ?? []) {
      if (stats.type === 'outbound-rtp') sent[stats.rid ?? ''] = stats.packetsSent;
    }
    return sent;
  },
  resetGaps(): void {
    for (const watcher of watchers.values()) watcher.resetGap();
  },
  async rename(name: string, metadata: string, attributes: Record<string, string>): Promise<void> {
    await room.localParticipant.setName(name);
    await room.localParticipant.setMetadata(metadata);
    await room.localParticipant.setAttributes(attributes);
  },
  /** Loses the websocket as a bad network does. */
  loseSocket: () => room.simulateScenario('signal-reconnect'),
  published: (index: number): LocalTrackPublication => published[index] as LocalTrackPublication,
  async unpublish(index: number): Promise<void> {
    const { track } = published[index] as LocalTrackPublication;
    if (track !== undefined) await room.localParticipant.unpublishTrack(track);
  },

  participants: (): SeenParticipant[] =>
    [...room.remoteParticipants.values()].map(({ sid, identity, name = '', kind, metadata = '', attributes }) => ({
      sid,
      identity,
      name,
      kind,
      metadata,
      attributes: { ...attributes },
    })),
  tracks: (): SeenPublication[] =>
    [...room.remoteParticipants.values()].flatMap(({ identity, trackPublications }) =>
      [...trackPublications.values()].map((publication) => {
        const { trackSid: sid, kind, source, trackName: name, isMuted: muted, isSubscribed: subscribed } = publication;
        const { frames = 0, maxGapMs = 0, width = 0, colour = 'black' } = watchers.get(sid)?.report() ?? {};
        const simulcast = publication.simulcasted ?? false;
        return { sid, identity, kind, source, name, muted, simulcast, subscribed, frames, maxGapMs, width, colour };
      }),
    ),
  /** Returns the loudest frequency of a remote sound and its level (0..255). */
  tone(sid: string): { hz: number; level: number } {
    return heard.get(sid)?.loudest() ?? { hz: 0, level: 0 };
  },
};

export type LivekitPage = typeof livekit;

declare global {
  interface Window {
    livekit: LivekitPage;
  }
}

window.livekit = livekit;
