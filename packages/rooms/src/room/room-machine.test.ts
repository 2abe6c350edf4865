import { beforeEach, describe, expect, test } from '@jest/globals';
import { silentLog, type Log } from '@bloom/log';
import type { MediaCommand, MediaEndpoint } from '@bloom/sfu';
import type { PeerConnection, PeerRef, SocketRef } from '../peer/peer-messages.js';
import type { ExpectedTracks } from '../peer/track-names.js';
import { defaultRoomConfig, type RoomConfig } from '../room-service.js';
import { videoTrack } from '../testing/index.js';
import { RoomMachine } from './room-machine.js';
import type { RoomWorld } from './room-world.js';

/** Records the effects of the machine as text. */
class RecordedWorld implements RoomWorld {
  readonly effects: string[] = [];
  readonly timers = new Map<string, number>();

  read(): string[] {
    return this.effects.splice(0);
  }

  notify({ type }: { type: string }): void {
    this.effects.push(`notify ${type}`);
  }

  startPeer(peerId: string): PeerRef {
    this.effects.push(`start ${peerId}`);
    return { path: `/peers/${peerId}`, key: peerId };
  }

  endPeer({ key }: PeerRef): void {
    this.effects.push(`end ${key}`);
  }

  attachPeer({ key }: PeerRef, { number, socket }: PeerConnection): void {
    this.effects.push(`attach ${key} ${number} ${socket.key}`);
  }

  detachPeer({ key }: PeerRef): void {
    this.effects.push(`detach ${key}`);
  }

  expectTracks({ key }: PeerRef, { tracks }: ExpectedTracks): void {
    this.effects.push(`expect ${key} ${tracks.map(({ trackId }) => trackId).join()}`);
  }

  sendToPeer({ key }: PeerRef, { type }: { type: string }): void {
    this.effects.push(`send ${key} ${type}`);
  }

  watchSocket(peerId: string, socket: SocketRef): void {
    this.effects.push(`watch ${peerId} ${socket.key}`);
  }

  closeSocket({ key }: SocketRef, code: number, reason: string): void {
    this.effects.push(`close ${key} ${code} ${reason}`);
  }

  closeTransport(peerId: string): void {
    this.effects.push(`closeTransport ${peerId}`);
  }

  setPermissions({ id }: { id: string }): void {
    this.effects.push(`permissions ${id}`);
  }

  media({ type, ...fields }: MediaCommand): void {
    this.effects.push([type, ...Object.values(fields).flat()].join(' '));
  }

  deliver({ id }: { id: string }, { topic }: { topic: string }, over: string): void {
    this.effects.push(`deliver ${id} ${topic} ${over}`);
  }

  endpointOf(): MediaEndpoint {
    return { address: '203.0.113.7', port: 50_000, fingerprint: { algorithm: 'sha-256', value: '00' } };
  }

  isCurrent(): boolean {
    return true;
  }

  endComponent(): void {}

  routeTracks(): void {}

  setTimer(timer: Parameters<RoomWorld['setTimer']>[0], ms: number): void {
    this.timers.set(JSON.stringify(timer), ms);
  }

  clearTimer(timer: Parameters<RoomWorld['clearTimer']>[0]): void {
    this.timers.delete(JSON.stringify(timer));
  }

  changed(): void {}

  ended(): void {
    this.effects.push('ended');
  }

  readonly log: Log = { ...silentLog, warn: (event) => void this.effects.push(`warn ${event}`) };

  nowMs = 0;

  now(): number {
    return this.nowMs;
  }

  async traffic(): ReturnType<RoomWorld['traffic']> {
    return { bytesReceived: 0, bytesSent: 0, failure: undefined };
  }

  measure(): void {}
}

const socket = (key: string): SocketRef => ({ path: `/sockets/${key}`, key });

let world: RecordedWorld;
let machine: RoomMachine;

function open(config: Partial<RoomConfig> = {}): void {
  let ids = 0;
  world = new RecordedWorld();
  const named = { ...defaultRoomConfig, ...config, roomId: 'kitchen' };
  machine = new RoomMachine({ config: named, newId: () => `p${++ids}`, webrtcEnabled: true, world });
  machine.start();
}

function join(peerId: string): void {
  machine.addPeer({});
  machine.attach({ peerId, socket: socket(`s-${peerId}`), client: 'sdk', replaces: null });
  machine.fromPeer(peerId, connectionOf(peerId), { type: 'join', metadata: null });
}

function connectionOf(peerId: string): number {
  const attached = world.effects.findLast((effect) => effect.startsWith(`attach ${peerId} `));
  return Number(attached?.split(' ')[2]);
}

beforeEach(() => open());

describe('a peer whose client was connected through a node that stops', () => {
  beforeEach(() => {
    for (const peerId of ['p1', 'p2']) join(peerId);
    machine.fromPeer('p1', connectionOf('p1'), { type: 'publish', tracks: [videoTrack('t1')] });
    world.read();
    machine.socketDown('p1', socket('s-p1'), { end: 'closed_by_server', returns: true });
  });

  test('is away for the others, and for the backend still there with its tracks', () => {
    expect(world.read()).toEqual(['send p2 endpointRemoved', 'expect p1 t1', 'detach p1', 'closeTransport p1']);
    expect(world.timers.get('"returns"')).toBe(10_000);
    expect(machine.view.peers[0]).toMatchObject({ status: 'connected', tracks: [{ id: 't1' }] });
  });

  test('comes back within 10 s without an event', () => {
    world.read();
    machine.attach({ peerId: 'p1', socket: socket('new'), client: 'sdk', replaces: null });
    machine.fromPeer('p1', connectionOf('p1'), { type: 'join', metadata: null });
    machine.fromPeer('p1', connectionOf('p1'), { type: 'publish', tracks: [videoTrack('t1')] });
    machine.returnsOver();
    expect(world.read().filter((effect) => effect.startsWith('notify'))).toEqual([]);
  });

  test('is disconnected once if it does not come back', () => {
    world.read();
    machine.socketDown('p1', socket('s-p1'));
    machine.returnsOver();
    machine.returnsOver();
    const news = world.read().filter((effect) => effect.startsWith('notify'));
    expect(news).toEqual(['notify peerDisconnected', 'notify trackRemoved']);
  });
});

test('everybody is told where the room goes on without its node, and those who join later too', () => {
  for (const peerId of ['p1', 'p2']) join(peerId);
  world.read();
  machine.nameStandby('b.example/socket/peer/websocket');
  expect(world.read()).toEqual(['send p1 standby', 'send p2 standby']);
  join('p3');
  expect(world.read().filter((effect) => effect.startsWith('send p3'))).toEqual(['send p3 joined', 'send p3 standby']);
});

describe("a LiveKit client whose websocket's node is lost", () => {
  const resume = (peerId: string, key: string) =>
    machine.attach({ peerId, socket: socket(key), client: 'livekit', replaces: null, resumes: true });

  beforeEach(() => {
    machine.addPeer({});
    machine.attach({ peerId: 'p1', socket: socket('s-p1'), client: 'livekit', replaces: null });
    machine.fromPeer('p1', connectionOf('p1'), { type: 'join', metadata: null });
    machine.fromPeer('p1', connectionOf('p1'), { type: 'publish', tracks: [videoTrack('t1')] });
    world.read();
  });

  test('keeps its session and its media for 60 s, and nobody is told', () => {
    machine.socketDown('p1', socket('s-p1'));
    expect(world.read()).toEqual(['send p1 socketLost']);
    expect(world.timers.get('{"peerId":"p1"}')).toBe(60_000);
    expect(machine.view.peers[0]).toMatchObject({ status: 'connected', tracks: [{ id: 't1' }] });
  });

  test('goes on with its session through another node', () => {
    machine.socketDown('p1', socket('s-p1'));
    world.read();
    expect(resume('p1', 'new').result).toBe('attached');
    expect(world.read()).toEqual(['watch p1 new', 'attach p1 1 new']);
    machine.peerOverdue('p1');
    expect(machine.view.peers).toHaveLength(1);
    machine.socketDown('p1', socket('s-p1'));
    expect(world.read()).toEqual([]);
  });

  test('takes the session from its former node, which is told and no more listened to', () => {
    expect(resume('p1', 'new').result).toBe('attached');
    expect(world.read()).toContainEqual('close s-p1 1000 Resumed elsewhere');
    machine.socketDown('p1', socket('s-p1'), { end: 'closed_by_server' });
    expect(world.read()).toEqual([]);
  });

  test('is removed if it does not return', () => {
    machine.socketDown('p1', socket('s-p1'), { returns: true });
    machine.peerOverdue('p1');
    const news = world.read().filter((effect) => effect.startsWith('notify'));
    expect(news).toEqual(['notify trackRemoved', 'notify peerDisconnected', 'notify peerDeleted']);
  });

  test('is removed at once when its session ends meanwhile', () => {
    machine.socketDown('p1', socket('s-p1'));
    machine.fromPeer('p1', 1, { type: 'end' });
    expect(machine.view.peers).toEqual([]);
  });

  test('cannot be continued by anybody if it has no session, or is no client of LiveKit', () => {
    machine.addPeer({});
    join('p3');
    const refused = { result: 'refused', reason: 'peer not found' };
    expect(['p2', 'p3', 'p9'].map((peerId) => resume(peerId, 'new'))).toEqual([refused, refused, refused]);
  });
});

describe('a peer that connects over and over', () => {
  const connect = (peerId: string) => {
    const answer = machine.attach({ peerId, socket: socket('again'), client: 'sdk', replaces: null });
    machine.socketDown(peerId, socket('again'));
    return answer.result === 'refused' ? answer.reason : answer.result;
  };

  test('makes a peer wait one second for each connection after 30, and the others not at all', () => {
    machine.addPeer({});
    machine.addPeer({});
    for (let i = 0; i < 30; i++) expect(connect('p1')).toBe('attached');
    expect(connect('p1')).toBe('too many connections');
    expect(connect('p2')).toBe('attached');
    world.nowMs = 999;
    expect(connect('p1')).toBe('too many connections');
    world.nowMs = 1_000;
    expect(connect('p1')).toBe('attached');
    expect(connect('p1')).toBe('too many connections');
  });

  test('keeps the current connection of a peer that connects too often', () => {
    machine.addPeer({});
    for (let i = 0; i < 29; i++) connect('p1');
    const [first, second] = [socket('first'), socket('second')];
    machine.attach({ peerId: 'p1', socket: first, client: 'sdk', replaces: null });
    world.read();
    const answer = machine.attach({ peerId: 'p1', socket: second, client: 'sdk', replaces: first });
    expect(answer).toEqual({ result: 'refused', reason: 'too many connections' });
    expect(world.read()).toEqual([]);
  });
});

test.each([
  ['media', { type: 'mediaState', peerId: 'p1', media: { state: 'failed', problem: 'NO_CHECKS' } }],
  ['silence', { type: 'transportSilent', peerId: 'p1' }],
] as const)('logs reports of the %s of a peer until the peer is removed', (_what, report) => {
  join('p1');
  world.read();
  machine.fromMedia(report);
  expect(world.read()).toContainEqual(expect.stringMatching(/^warn peer/));
  machine.removePeer('p1');
  world.read();
  machine.fromMedia(report);
  expect(world.read()).toEqual([]);
});

describe('the end and the announcements of a room', () => {
  test('announces the room before anything else', () => {
    expect(world.read()).toEqual(['notify roomCreated']);
  });

  test('starts the actor of a peer before it announces the peer', () => {
    world.read();
    expect(machine.addPeer({})).toMatchObject({ ok: true, value: { peer: { id: 'p1', status: 'disconnected' } } });
    expect(world.read()).toEqual(['start p1', 'notify peerAdded']);
  });

  test('closes sockets first when a room is deleted, then announces each end once', () => {
    join('p1');
    machine.fromPeer('p1', 1, { type: 'publish', tracks: [videoTrack('t1')] });
    world.read();
    machine.remove('deleted');
    machine.remove('deleted');
    machine.crash();
    expect(world.read()).toEqual([
      'close s-p1 1000 Room stopped',
      'notify trackRemoved',
      'notify peerDisconnected',
      'closeTransport p1',
      'notify peerDeleted',
      'ended',
      'notify roomDeleted',
    ]);
  });

  test("tells only LiveKit's clients that the node stops, since they would not come back to a deleted room", () => {
    join('p1');
    machine.addPeer({});
    machine.attach({ peerId: 'p2', socket: socket('s-p2'), client: 'livekit', replaces: null });
    world.read();
    machine.remove('node_closing');
    expect(world.read().slice(0, 2)).toEqual(['close s-p1 1000 Room stopped', 'close s-p2 1001 Node stopped']);
  });

  test('announces no deletion of the peers of a crashing room', () => {
    join('p1');
    world.read();
    machine.crash();
    expect(world.read()).toEqual([
      'close s-p1 1011 Internal server error',
      'notify peerDisconnected',
      'closeTransport p1',
      'ended',
      'notify roomCrashed',
    ]);
  });
});

describe('peers of a room', () => {
  test('tells a peer of the others, and them of the peer', () => {
    join('p1');
    join('p2');
    expect(world.read().slice(-4)).toEqual([
      'notify peerConnected',
      'send p2 joined',
      'send p1 endpointAdded',
      'notify peerMetadataUpdated',
    ]);
  });

  test('moves a peer to another socket only when its own was named as dead', () => {
    join('p1');
    world.read();
    expect(machine.attach({ peerId: 'p1', socket: socket('new'), client: 'sdk', replaces: null })).toEqual({
      result: 'occupied',
      by: socket('s-p1'),
    });
    expect(world.read()).toEqual([]);
    machine.attach({ peerId: 'p1', socket: socket('new'), client: 'sdk', replaces: socket('s-p1') });
    expect(world.read()).toEqual([
      'close s-p1 1000 Replaced by a new connection',
      'notify peerDisconnected',
      'detach p1',
      'closeTransport p1',
      'watch p1 new',
      'attach p1 2 new',
      'notify peerConnected',
    ]);
  });

  test('ignores requests and losses of a former connection', () => {
    join('p1');
    machine.attach({ peerId: 'p1', socket: socket('new'), client: 'sdk', replaces: socket('s-p1') });
    world.read();
    machine.fromPeer('p1', 1, { type: 'publish', tracks: [videoTrack('t1')] });
    machine.socketDown('p1', socket('s-p1'));
    expect(world.read()).toEqual([]);
    expect(machine.view.peers[0]).toMatchObject({ status: 'connected', tracks: [] });
  });

  test('removes a peer without a socket when its timeout ends', () => {
    open({ peerDisconnectedTimeout: 3 });
    machine.addPeer({});
    expect(world.timers.get('{"peerId":"p1"}')).toBe(3_000);
    machine.peerOverdue('p1');
    expect(machine.view.peers).toEqual([]);
    expect(world.read().slice(-3)).toEqual(['closeTransport p1', 'end p1', 'notify peerDeleted']);
  });

  test('keeps a peer that came back as its timer fired', () => {
    open({ peerDisconnectedTimeout: 3 });
    join('p1');
    expect(world.timers.size).toBe(0);
    world.read();
    machine.peerOverdue('p1');
    expect(world.read()).toEqual([]);
    expect(machine.view.peers).toMatchObject([{ id: 'p1', status: 'connected' }]);
  });

  test('refuses a peer the track id of another one', () => {
    join('p1');
    machine.fromPeer('p1', 1, { type: 'publish', tracks: [videoTrack('t1')] });
    join('p2');
    world.read();
    machine.fromPeer('p2', 2, { type: 'publish', tracks: [videoTrack('t1'), videoTrack('t2')] });
    expect(world.read()).toEqual([
      'send p1 tracksAdded',
      'notify trackAdded',
      'warn peer.track_id_taken',
      // Neither its session nor the media plane may keep the track.
      'removeTrack p2 t1',
      'send p2 trackRemovedByServer',
    ]);
    for (let i = 0; i < 100; i++) machine.fromPeer('p2', 2, { type: 'publish', tracks: [videoTrack('t1')] });
    expect(world.read().filter((line) => line.startsWith('warn'))).toHaveLength(6);
  });
});

describe('configuration changes', () => {
  test('restarts or stops the timers on a change', () => {
    open({ peerlessPurgeTimeout: 5 });
    machine.addPeer({});
    machine.update({ peerlessPurgeTimeout: 7, peerDisconnectedTimeout: 3 });
    expect([...world.timers]).toEqual([
      ['"peerless"', 7_000],
      ['{"peerId":"p1"}', 3_000],
    ]);
    machine.update({ peerlessPurgeTimeout: null, peerDisconnectedTimeout: null });
    expect(world.timers.size).toBe(0);
  });

  test('leaves timers alone when their time stays the same', () => {
    open({ peerlessPurgeTimeout: 5, peerDisconnectedTimeout: 5 });
    machine.addPeer({});
    world.timers.clear();
    machine.update({ maxPeers: 1, peerlessPurgeTimeout: 5 });
    expect(world.timers.size).toBe(0);
    expect(machine.addPeer({})).toMatchObject({ ok: false, code: 'PEER_LIMIT' });
  });

  test('does not start the timer of a connected peer', () => {
    open();
    join('p1');
    machine.update({ peerDisconnectedTimeout: 3, peerlessPurgeTimeout: 3 });
    expect(world.timers.size).toBe(0);
  });
});

describe('data channel messages for the backend', () => {
  test('subscribes to their labels when the room starts and changes, and shows the labels while there are any', () => {
    open({ dataEvents: ['chat', 'game'] });
    expect(world.read()).toEqual(['notify roomCreated', 'setDataEvents chat game']);
    machine.update({ maxPeers: 2 });
    expect(world.read()).toEqual([]);
    expect(machine.update({ dataEvents: ['poll'] })).toMatchObject({ value: { config: { dataEvents: ['poll'] } } });
    for (const dataEvents of [null, []]) {
      machine.update({ dataEvents: ['poll'] });
      expect(machine.update({ dataEvents })).not.toHaveProperty('value.config.dataEvents');
    }
    const none = 'setDataEvents';
    expect(world.read()).toEqual(['setDataEvents poll', 'setDataEvents poll', none, 'setDataEvents poll', none]);
  });

  test('notifies the backend of each message', () => {
    open();
    join('p1');
    world.read();
    machine.fromMedia({ type: 'dataMessage', peerId: 'p1', label: 'chat', to: [], data: 'hi', transport: 1 });
    expect(world.read()).toEqual(['notify dataMessage']);
  });
});

describe('a room without connected peers', () => {
  beforeEach(() => open({ peerlessPurgeTimeout: 5 }));

  test('ends a room when its peerless timeout ends', () => {
    expect(world.timers.get('"peerless"')).toBe(5_000);
    machine.peerless();
    expect(machine.ended).toBe(true);
  });

  test('keeps a room when a peer connected as the timer fired', () => {
    join('p1');
    expect(world.timers.has('"peerless"')).toBe(false);
    machine.peerless();
    expect(machine.ended).toBe(false);
    machine.socketDown('p1', socket('s-p1'));
    expect(world.timers.get('"peerless"')).toBe(5_000);
  });
});

test('counts every track as a subscription for each joined peer except its publisher', () => {
  join('p1');
  join('p2');
  join('p3');
  machine.fromPeer('p1', 1, { type: 'publish', tracks: [videoTrack('t1'), videoTrack('t2')] });
  expect(machine.subscriptions).toBe(4);
  machine.fromPeer('p3', 3, { type: 'leave' });
  expect(machine.subscriptions).toBe(2);
});
