/** Fakes for the dependencies of the rooms: a media engine, sessions and sockets under a test's control. */
import { openActorSystem, type ActorSystem } from '@bloom/actors';
import { ManualClock } from '@bloom/time/testing';
import { silentLog, type Log } from '@bloom/log';
import type { Notification } from '@bloom/protocol';
import {
  emptyEngineStats,
  MediaError,
  type MediaEngine,
  type MediaCommand,
  type MediaEndpoint,
  type MediaRoom,
  type MediaRoomEvent,
  type TransportNegotiation,
  type TransportStats,
} from '@bloom/sfu';
import { RoomHost } from '../room-host.js';
import type { RoomHostOptions } from '../room-host-options.js';
import type { RoomsLoad } from '../room-reports.js';
import type {
  CreatePeerSession,
  EndpointTrack,
  PeerSession,
  SessionAction,
  SessionInput,
} from '../peer/peer-session.js';
import type { RoomMeasure } from '../room/room-journal.js';
import type { ComponentKind } from '../room/component-kind.js';
import type { PeerSocket, SocketEnd } from '../room-service.js';
import { RoomRouter } from '../room-router.js';

export class TestMedia implements MediaEngine {
  readonly commands: string[] = [];
  readonly emit = new Map<string, (event: MediaRoomEvent) => void>();
  failNextRoom = false;
  #gate: Promise<void> | undefined;
  rejectNegotiations = false;
  readonly workerRestarts = 0;
  /** Final counters of every transport, replacing those of an idle one. */
  lastStats: TransportStats | undefined;
  /** Number of the last transport, counted from 1 over all rooms. */
  lastTransport = 0;
  /** Transport numbers by peer, by open room. */
  readonly #rooms = new Map<string, Map<string, number>>();
  #closed = false;

  get takesRooms(): boolean {
    return !this.#closed;
  }

  /** Keeps rooms from opening until the returned function is called. */
  holdRooms(): () => void {
    let open: (() => void) | undefined;
    this.#gate = new Promise((resolve) => {
      open = resolve;
    });
    return () => {
      this.#gate = undefined;
      open?.();
    };
  }

  async openRoom(roomId: string, onEvent: (event: MediaRoomEvent) => void): Promise<MediaRoom> {
    if (this.failNextRoom) {
      this.failNextRoom = false;
      throw new Error('no worker');
    }
    if (this.#closed) throw new MediaError('CLOSED', 'the media engine is closed');
    if (this.#rooms.has(roomId)) throw new MediaError('EXISTS', `the room ${roomId} is already open`);
    const transports = new Map<string, number>();
    this.#rooms.set(roomId, transports);
    if (this.#gate !== undefined) await this.#gate;
    const say = (command: string): void => void this.commands.push(`${roomId}: ${command}`);
    this.emit.set(roomId, onEvent);
    say('open');

    return {
      roomId,
      openTransport: (peerId) => {
        transports.set(peerId, ++this.lastTransport);
        say(`openTransport ${peerId}`);
        return ENDPOINT;
      },
      openReceiver: (peerId) => say(`openReceiver ${peerId}`),
      endpointOf: (peerId) => (transports.has(peerId) ? ENDPOINT : undefined),
      choiceOf: () => undefined,
      isCurrent: (event) =>
        event.transport === undefined || !('peerId' in event) || transports.get(event.peerId ?? '') === event.transport,
      negotiate: async (peerId, { generation }) => {
        say(`negotiate ${peerId} ${generation}`);
        if (this.rejectNegotiations || !transports.has(peerId)) throw new MediaError('NO_TRANSPORT', peerId);
      },
      closeTransport: async (peerId) => {
        say(`closeTransport ${peerId}`);
        return transports.delete(peerId) ? (this.lastStats ?? idleTransport(peerId)) : undefined;
      },
      do: (command) => say(describeCommand(command)),
      openFeed: ({ trackId }) => ({ trackId, send: () => undefined, close: () => say(`closeFeed ${trackId}`) }),
      openTap: ({ trackId }) => ({
        trackId,
        requestKeyframe: () => undefined,
        close: async () => say(`closeTap ${trackId}`),
      }),
      stats: async () => ({ roomId, transports: [...transports.keys()].map((peerId) => idleTransport(peerId)) }),
      capturePackets: async () => undefined,
      close: async () => {
        if (this.#rooms.get(roomId) === transports) this.#rooms.delete(roomId);
        transports.clear();
        this.emit.delete(roomId);
        say('close');
      },
    };
  }

  async stats(): ReturnType<MediaEngine['stats']> {
    const transports = [...this.#rooms.values()].reduce((sum, { size }) => sum + size, 0);
    return { ...emptyEngineStats(), rooms: this.#rooms.size, transports };
  }

  workerSamples(): [] {
    return [];
  }

  workersBusy(): number[] {
    return [];
  }

  async profileWorker(): Promise<undefined> {}

  async close(): Promise<void> {
    this.#closed = true;
  }
}

const ENDPOINT: MediaEndpoint = {
  address: '127.0.0.1',
  port: 5000,
  fingerprint: { algorithm: 'sha-256', value: '00' },
};

function idleTransport(peerId: string): TransportStats {
  return {
    peerId,
    iceState: 'new',
    dtlsState: 'new',
    media: { state: 'idle' },
    protocol: 'udp',
    bytesReceived: 0,
    bytesSent: 0,
    packetsReceived: 0,
    packetsSent: 0,
    bindingRequestsReceived: 0,
    bindingResponsesSent: 0,
    inbound: [],
    outbound: [],
  };
}

/** A session whose client sends the actions themselves as JSON, and receives all other inputs. */
export const scriptedSession: CreatePeerSession = ({ peerId, enableSimulcast }): PeerSession => ({
  handle: (input: SessionInput): readonly SessionAction[] => {
    if (input.type !== 'clientEvent') return [{ type: 'send', text: JSON.stringify(input) }];
    if (input.text === 'crash') throw new Error('a bug in the session');

    return JSON.parse(input.text) as SessionAction[];
  },
  descriptions: () => ({ offer: `offer of ${peerId}`, answer: `simulcast ${enableSimulcast}` }),
});

export class TestSocket implements PeerSocket {
  readonly sent: unknown[] = [];
  closed: string | undefined;
  alive = true;
  pings = 0;

  send(text: string): void {
    this.sent.push(JSON.parse(text));
  }

  close(code: number, reason: string): void {
    this.closed ??= `${code} ${reason}`;
  }

  async ping(): Promise<boolean> {
    this.pings++;
    return this.alive;
  }
}

export function videoTrack(trackId: string, more: Partial<EndpointTrack> = {}): EndpointTrack {
  return { trackId, kind: 'video', codec: 'h264', metadata: null, encodings: [], disabledEncodings: [], ...more };
}

/** Returns a notification as text, such as `trackRemoved ann/t1`. */
function describe(notification: Notification): string {
  const { type } = notification;
  if ('track' in notification) {
    const owner = 'peerId' in notification.owner ? notification.owner.peerId : notification.owner.componentId;
    return `${type} ${owner}/${notification.track.id}`;
  }
  if (type === 'peerCrashed') return `${type} ${notification.peerId} "${notification.reason}"`;
  if ('peerId' in notification) return `${type} ${notification.peerId}`;

  return 'componentId' in notification ? `${type} ${notification.componentId}` : type;
}

/** A joined client. */
export interface TestPeer {
  id: string;
  token: string;
  socket: TestSocket;
  /** Performs actions through the session. */
  act: (...actions: SessionAction[]) => Promise<void>;
  receive: (text: string) => Promise<void>;
  detach: (end?: SocketEnd) => Promise<void>;
}

export interface TestNode {
  clock: ManualClock;
  system: ActorSystem;
  media: TestMedia;
  host: RoomHost;
  rooms: RoomRouter;
  /** Returns the notifications since the last call as text. */
  news: () => string[];
  notifications: Notification[];
  webhookUrls: (string | null)[];
  /** Request ids of the notifications. */
  requestIds: (string | undefined)[];
  /** The load of the rooms at each notification. */
  loads: RoomsLoad[];
  /** Drops what was recorded so far, for tests of thousands of rounds. */
  forget: () => void;
  advance: (seconds: number) => Promise<void>;
  connect: (token: string, socket?: TestSocket) => Promise<Omit<TestPeer, 'id'>>;
  /** Adds a peer, connects its socket, joins; ids are p1, p2, ... */
  join: (roomId: string, metadata?: unknown) => Promise<TestPeer>;
  close: () => Promise<void>;
}

export function testNode(
  options: {
    webrtcEnabled?: boolean;
    componentKinds?: readonly ComponentKind[];
    log?: Log;
    /** Default: `scriptedSession`. */
    createSession?: CreatePeerSession;
    measure?: (measure: RoomMeasure, roomId: string) => void;
    moved?: NonNullable<RoomHostOptions['moved']>;
    /** Called within the turn of the room. */
    onNotification?: (notification: Notification) => void;
  } = {},
): TestNode {
  const clock = new ManualClock();
  const system = openActorSystem({ log: options.log ?? silentLog, clock });
  const media = new TestMedia();
  const notifications: Notification[] = [];
  const webhookUrls: (string | null)[] = [];
  const requestIds: (string | undefined)[] = [];
  const loads: RoomsLoad[] = [];
  let ids = 0;
  let read = 0;
  const log = options.log ?? silentLog;
  const secretKeyBase = 'a secret for tests';
  const host: RoomHost = new RoomHost({
    system,
    engine: media,
    createSession: scriptedSession,
    events: (notification, { webhookUrl, requestId }) => {
      notifications.push(notification);
      webhookUrls.push(webhookUrl);
      requestIds.push(requestId);
      loads.push(host.load());
      options.onNotification?.(notification);
    },
    log,
    address: 'sfu.example:5002',
    secretKeyBase,
    webrtcEnabled: true,
    clock,
    newId: () => `p${++ids}`,
    ...options,
  });
  const rooms = new RoomRouter({ system, host, log, secretKeyBase, clock });

  const connect = async (token: string, socket = new TestSocket()): Promise<Omit<TestPeer, 'id'>> => {
    const attached = await rooms.attachPeer(token, socket);
    if (typeof attached === 'string') throw new Error(attached);
    const receive = async (text: string): Promise<void> => {
      attached.receive(text);
      await system.idle();
    };

    return {
      token,
      socket,
      receive,
      act: (...actions) => receive(JSON.stringify(actions)),
      detach: async (end = 'closed_by_client') => {
        attached.detach(end);
        await system.idle();
      },
    };
  };

  return {
    clock,
    system,
    media,
    host,
    rooms,
    notifications,
    webhookUrls,
    requestIds,
    loads,
    news: () => {
      const fresh = notifications.slice(read).map(describe);
      read = notifications.length;
      return fresh;
    },
    forget: () => {
      for (const records of [notifications, webhookUrls, requestIds, loads, media.commands]) records.length = 0;
      read = 0;
    },
    advance: (seconds) => clock.advanceAsync(seconds * 1_000, () => system.idle()),
    connect,
    join: async (roomId, metadata = null) => {
      const { peer, token } = await rooms.addPeer(roomId, {});
      const client = await connect(token);
      await client.act({ type: 'join', metadata });
      return { id: peer.id, ...client };
    },
    close: () => system.close(),
  };
}

export function negotiation(generation: number): TransportNegotiation {
  return {
    generation,
    ice: { localUfrag: 'a', localPwd: 'b', remoteUfrag: 'c', remotePwd: 'd' },
    fingerprint: { algorithm: 'sha-256', value: '00' },
    inbound: [],
    outbound: [],
  };
}

function describeCommand(command: MediaCommand): string {
  switch (command.type) {
    case 'setTargetVariant':
      return `target ${command.peerId} ${command.trackId} ${command.variant}`;
    case 'setTrackPaused':
      return `paused ${command.peerId} ${command.trackId} ${command.paused}`;
    case 'setTrackBitrates':
      return `bitrates ${command.trackId}`;
    case 'setTrackMuted':
      return `muted ${command.trackId} ${command.muted}`;
    case 'setPermissions': {
      const { audio, video, data, subscribe } = command.permissions;
      return `permissions ${command.peerId} audio ${audio} video ${video} data ${data} subscribe ${subscribe}`;
    }
    case 'setTrackBlocked':
      return `blocked ${command.peerId} ${command.trackId} ${command.blocked}`;
    case 'setDataEvents':
      return `dataEvents ${command.labels.join(' ')}`;
    case 'sendMessage':
      return `message ${command.peerId} ${command.text}`;
    default:
      return Object.values(command).join(' ');
  }
}
