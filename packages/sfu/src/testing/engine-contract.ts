/** What the control plane relies on, without any packets. Runs on the real engine and on its stand-in for tests. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { MediaCommand, MediaEngine, MediaRoom, MediaRoomEvent, TransportNegotiation } from '../media-engine.js';

const relay = (password: string) => ({ username: `1900000000:${password}`, password });

const NEGOTIATION: TransportNegotiation = {
  generation: 1,
  ice: { localUfrag: 'abcd', localPwd: 'p'.repeat(24), remoteUfrag: 'efgh', remotePwd: 'q'.repeat(24) },
  fingerprint: { algorithm: 'sha-256', value: Array.from({ length: 32 }, () => 'AB').join(':') },
  inbound: [],
  outbound: [],
};

export function describeEngineContract(name: string, open: () => Promise<MediaEngine>): void {
  describe(`media engine contract: ${name}`, () => {
    let engine: MediaEngine;
    const rooms: MediaRoom[] = [];
    const fresh: MediaEngine[] = [];
    beforeAll(async () => {
      engine = await open();
    });
    afterEach(async () => {
      await Promise.all(rooms.splice(0).map((room) => room.close()));
      await Promise.all(fresh.splice(0).map((one) => one.close()));
    });
    afterAll(() => engine.close());

    /** Opens an engine for one test only. */
    async function openFresh(): Promise<MediaEngine> {
      const one = await open();
      fresh.push(one);
      return one;
    }

    async function openRoom(roomId: string, of = engine): Promise<MediaRoom> {
      const room = await of.openRoom(roomId, () => undefined);
      rooms.push(room);
      return room;
    }
    const event = (peerId: string, transport: number): MediaRoomEvent => ({ type: 'dtlsConnected', peerId, transport });

    test('allows one open room per id and lets the id be reused once that room is closed', async () => {
      const room = await openRoom('kitchen');
      expect(room.roomId).toBe('kitchen');
      await expect(openRoom('kitchen')).rejects.toMatchObject({ code: 'EXISTS' });
      await Promise.all([room.close(), room.close()]);
      expect(await openRoom('kitchen')).toMatchObject({ roomId: 'kitchen' });
    });

    test('accepts no rooms once closed', async () => {
      const closing = await openFresh();
      await openRoom('kitchen', closing);
      expect(closing.takesRooms).toBe(true);
      await closing.close();
      expect(closing.takesRooms).toBe(false);
      await expect(openRoom('hall', closing)).rejects.toMatchObject({ code: 'CLOSED' });
    });

    test('refuses to negotiate for a peer without a transport', async () => {
      const room = await openRoom('kitchen');
      await expect(room.negotiate('ann', NEGOTIATION)).rejects.toMatchObject({ code: 'NO_TRANSPORT' });
      room.openTransport('ann', relay('a'));
      await expect(room.negotiate('ann', NEGOTIATION)).resolves.toBeUndefined();
      await room.closeTransport('ann');
      await expect(room.negotiate('ann', NEGOTIATION)).rejects.toMatchObject({ code: 'NO_TRANSPORT' });
    });

    test('reports the last counters of a transport once when it ends', async () => {
      const room = await openRoom('kitchen');
      expect(await room.closeTransport('ann')).toBeUndefined();
      room.openTransport('ann', relay('a'));
      expect(await room.closeTransport('ann')).toMatchObject({
        peerId: 'ann',
        bytesReceived: 0,
        packetsSent: 0,
        inbound: [],
        outbound: [],
      });
      expect(await room.closeTransport('ann')).toBeUndefined();
    });

    test('treats events as current for their transport number until that transport is replaced or closed', async () => {
      // An engine counts the transports of all its rooms.
      const room = await openRoom('kitchen', await openFresh());
      const current = (peerId: string): number[] => [1, 2, 3, 4].filter((n) => room.isCurrent(event(peerId, n)));
      expect(current('ann')).toEqual([]);
      room.openTransport('ann', relay('a'));
      room.openTransport('bob', relay('b'));
      expect(current('ann')).toEqual([1]);
      expect(current('bob')).toEqual([2]);
      room.openTransport('ann', relay('c'));
      expect(current('ann')).toEqual([3]);
      expect(current('bob')).toEqual([2]);
      await room.closeTransport('ann');
      expect(current('ann')).toEqual([]);
      expect(current('bob')).toEqual([2]);
      expect(room.isCurrent({ type: 'dtlsConnected', peerId: 'ann' })).toBe(true);
      expect(room.isCurrent({ type: 'roomFailed', reason: 'x' })).toBe(true);
    });

    test('counts rooms and transports while they are open', async () => {
      const room = await openRoom('kitchen');
      room.openTransport('ann', relay('a'));
      room.openTransport('bob', relay('b'));
      await room.closeTransport('bob');
      const { roomId, transports } = await room.stats();
      expect(roomId).toBe('kitchen');
      expect(transports.map(({ peerId }) => peerId)).toEqual(['ann']);
      expect(await engine.stats()).toMatchObject({ rooms: 1, transports: 1, packetsForwarded: 0 });
      await room.close();
      expect(await engine.stats()).toMatchObject({ rooms: 0, transports: 0 });
    });

    test('ignores commands for peers and tracks that have left', async () => {
      const room = await openRoom('kitchen');
      const commands: MediaCommand[] = [
        { type: 'setTargetVariant', peerId: 'ann', trackId: 'cam', variant: 'h' },
        { type: 'setTrackPaused', peerId: 'ann', trackId: 'cam', paused: true },
        { type: 'setMaxFrameRate', peerId: 'ann', trackId: 'cam', framesPerSecond: 15 },
        { type: 'setTrackWithheld', peerId: 'ann', trackId: 'cam', withheld: true },
        { type: 'setTrackBitrates', peerId: 'ann', trackId: 'cam', bitratesBps: { h: 1 } },
        { type: 'setTrackMuted', peerId: 'ann', trackId: 'cam', muted: true },
        {
          type: 'setPermissions',
          peerId: 'ann',
          permissions: { audio: false, video: false, data: false, subscribe: false },
        },
        { type: 'setTrackBlocked', peerId: 'ann', trackId: 'cam', blocked: true },
        { type: 'removeTrack', peerId: 'ann', trackId: 'cam' },
        { type: 'setDataEvents', labels: ['chat'] },
        { type: 'sendMessage', peerId: 'ann', text: 'hello' },
      ];
      for (const command of commands) room.do(command);
      expect(await room.capturePackets('ann')).toBeUndefined();
      expect((await room.stats()).transports).toEqual([]);
    });

    test('lets components publish and receive tracks by their ids, and close them twice', async () => {
      const room = await openRoom('kitchen');
      const feed = room.openFeed({ trackId: 'film', endpointId: 'file', kind: 'audio', codec: 'opus' });
      const tap = room.openTap({ trackId: 'film', codecs: ['vp8'], onFrame: () => undefined });
      expect(feed.trackId).toBe('film');
      expect(tap.trackId).toBe('film');
      tap.requestKeyframe();
      feed.close();
      feed.close();
      await Promise.all([tap.close(), tap.close()]);
      expect((await room.stats()).transports).toEqual([]);
    });
  });
}
