/** What every `MediaEngine` must do over real sockets. Runs in the calling thread and on worker threads. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { createCertificate, type DtlsCertificate } from '@bloom/webrtc';
import type { DataClient } from '@bloom/webrtc/testing';
import { RtcpReader, splitAnnexB, toAnnexB } from '@bloom/rtp';
import type { MediaEngine, MediaRoom, MediaRoomEvent } from '../media-engine.js';
import type { TappedFrame } from '../media-frames.js';
import {
  audioSlot,
  H264,
  inboundAudio,
  inboundSimulcast,
  inboundVideo,
  SyntheticSource,
  videoSlot,
} from './synthetic-media.js';
import { readCapture } from '../forwarding/packet-capture.js';
import { RelayClient } from './relay-client.js';
import { WireClient } from './wire-client.js';

export function describeEngine(name: string, open: () => Promise<MediaEngine>): void {
  describe(name, () => {
    let engine: MediaEngine;
    let certificate: DtlsCertificate;
    const clients: WireClient[] = [];
    const rooms: MediaRoom[] = [];

    beforeAll(async () => {
      certificate = await createCertificate();
      engine = await open();
    });
    afterAll(() => engine.close());
    afterEach(async () => {
      await Promise.all(clients.splice(0).map((client) => client.close()));
      await Promise.all(rooms.splice(0).map((room) => room.close()));
    });

    interface Opened {
      room: MediaRoom;
      events: MediaRoomEvent[];
      /** Resolves once such an event has arrived. */
      event(
        wanted: MediaRoomEvent['type'] | ((event: MediaRoomEvent) => boolean),
        peerId?: string,
      ): Promise<MediaRoomEvent>;
      client(peerId: string): Promise<WireClient>;
    }

    async function openRoom(roomId: string): Promise<Opened> {
      const events: MediaRoomEvent[] = [];
      const waiting: (() => void)[] = [];
      const room = await engine.openRoom(roomId, (event) => {
        events.push(event);
        for (const look of waiting.slice()) look();
      });
      rooms.push(room);
      return {
        room,
        events,
        event: (wanted, peerId) =>
          new Promise((resolve) => {
            const fits = (event: MediaRoomEvent): boolean =>
              typeof wanted === 'function'
                ? wanted(event)
                : event.type === wanted && (peerId === undefined || ('peerId' in event && event.peerId === peerId));
            const look = (): void => {
              const found = events.find(fits);
              if (found === undefined) return;
              waiting.splice(waiting.indexOf(look), 1);
              resolve(found);
            };
            waiting.push(look);
            look();
          }),
        client: async (peerId) => {
          const client = await WireClient.open(room, peerId, certificate);
          clients.push(client);
          return client;
        },
      };
    }

    const camera = (ssrc: number, over: object = {}): SyntheticSource =>
      new SyntheticSource({ ssrc, payloadType: 96, mid: '1', ...over });

    test('shows one client what another one sends', async () => {
      const { event, client } = await openRoom('pair');
      const publisher = await client('pub');
      const viewer = await client('sub');
      await publisher.cycle({ inbound: [inboundVideo('cam'), inboundAudio('mic')] });
      await viewer.cycle({ outbound: [videoSlot('cam'), audioSlot('mic')] });
      expect(await event('dtlsConnected', 'sub')).toBeDefined();
      expect(await event('iceConnected', 'pub')).toMatchObject({ generation: 1 });

      const video = camera(0x101);
      const audio = new SyntheticSource({ ssrc: 0x201, payloadType: 111, mid: '0' });
      for (const packet of video.vp8Frame({ key: true, packets: 3, size: 1000 })) publisher.send(packet);
      for (const packet of audio.opusFrame()) publisher.send(packet);
      await viewer.until(() => viewer.rtp.length >= 4);
      const [first, second, third, fourth] = viewer.rtp;
      expect(first!.header.ssrc).toBe(0xaaaa0001);
      expect(second!.header.sequenceNumber).toBe(first!.header.sequenceNumber + 1);
      expect(third!.payload.subarray(6)).toEqual(Buffer.alloc(1000, 0x01));
      expect(fourth!.header.ssrc).toBe(0xbbbb0001);
      expect(await event('encodingSwitched', 'sub')).toEqual({
        type: 'encodingSwitched',
        peerId: 'sub',
        trackId: 'cam',
        variant: 'h',
        reason: 'other',
        transport: expect.any(Number),
      });
    });

    test('withholds a blocked track, and publishes nothing for a peer without permissions', async () => {
      const { room, client } = await openRoom('moderated');
      const publisher = await client('pub');
      const viewer = await client('sub');
      await publisher.cycle({ inbound: [inboundAudio('mic'), inboundVideo('cam')] });
      await viewer.cycle({ outbound: [audioSlot('mic'), videoSlot('cam')] });
      const audio = new SyntheticSource({ ssrc: 0x201, payloadType: 111, mid: '0' });
      const video = camera(0x101);
      const received = (ssrc: number): number => viewer.rtp.filter(({ header }) => header.ssrc === ssrc).length;
      const sentBySound = (): number => received(0xbbbb0001);
      let pictures = 0;
      const play = async (): Promise<void> => {
        // Commands and packets reach a worker on different paths.
        await room.stats();
        for (const packet of audio.opusFrame()) publisher.send(packet);
        const picture = video.vp8Frame({ key: true });
        for (const packet of picture) publisher.send(packet);
        pictures += picture.length;
        await viewer.until(() => received(0xaaaa0001) === pictures);
      };
      await play();
      expect(sentBySound()).toBe(1);
      room.do({ type: 'setTrackBlocked', peerId: 'pub', trackId: 'mic', blocked: true });
      await play();
      room.do({ type: 'setTrackBlocked', peerId: 'pub', trackId: 'mic', blocked: false });
      room.do({
        type: 'setPermissions',
        peerId: 'pub',
        permissions: { audio: false, video: true, data: true, subscribe: true },
      });
      await play();
      room.do({
        type: 'setPermissions',
        peerId: 'pub',
        permissions: { audio: true, video: true, data: true, subscribe: true },
      });
      room.do({ type: 'removeTrack', peerId: 'pub', trackId: 'mic' });
      await publisher.cycle({ inbound: [inboundAudio('mic'), inboundVideo('cam')] });
      await play();
      expect(sentBySound()).toBe(1);
    });

    test('withholds a track from a subscriber, wherever its transport and the track are', async () => {
      const { room, client } = await openRoom('withheld');
      room.do({ type: 'setTrackWithheld', peerId: 'sub', trackId: 'mic', withheld: true });
      const publisher = await client('pub');
      const [listener, other] = [await client('sub'), await client('other')];
      await publisher.cycle({ inbound: [inboundAudio('mic')] });
      for (const each of [listener, other]) await each.cycle({ outbound: [audioSlot('mic')] });
      const audio = new SyntheticSource({ ssrc: 0x201, payloadType: 111, mid: '0' });
      const play = async (): Promise<void> => {
        // Commands and packets reach a worker on different paths.
        await room.stats();
        const before = other.rtp.length;
        for (const packet of audio.opusFrame()) publisher.send(packet);
        await other.until(() => other.rtp.length > before);
      };
      await play();
      expect(listener.rtp).toHaveLength(0);
      room.do({ type: 'setTrackWithheld', peerId: 'sub', trackId: 'mic', withheld: false });
      await play();
      await listener.until(() => listener.rtp.length > 0);
      expect(listener.rtp).toHaveLength(1);
    });

    test('treats transport events as current until the transport is replaced or closed', async () => {
      const { room, event, client } = await openRoom('current');
      await (await client('pub')).cycle({ inbound: [inboundVideo('cam')] });
      const former = await event('dtlsConnected', 'pub');
      expect(room.isCurrent(former)).toBe(true);
      room.openTransport('pub', { username: '1900000000:again', password: 'cA==' });
      expect(room.isCurrent(former)).toBe(false);
      room.closeTransport('pub');
      expect(room.isCurrent(former)).toBe(false);
      expect(room.isCurrent({ type: 'voiceActivity', trackId: 'mic', status: 'speech', peerId: 'pub' })).toBe(true);
      expect(room.isCurrent({ type: 'roomFailed', reason: 'x' })).toBe(true);
    });

    test("sends a component's feed to clients and to another component's tap", async () => {
      const { room, client } = await openRoom('components');
      const viewer = await client('sub');
      const frames: TappedFrame[] = [];
      await viewer.cycle({ outbound: [videoSlot('film', { codec: { ...H264, payloadType: 120 } })] });
      let wished = (): void => undefined;
      const feed = room.openFeed({
        trackId: 'film',
        endpointId: 'player',
        kind: 'video',
        codec: 'h264',
        onKeyframeWanted: () => wished(),
      });
      const tap = room.openTap({
        trackId: 'film',
        codecs: ['h264'],
        onFrame: async (frame) => {
          await Promise.resolve();
          frames.push(frame);
        },
      });
      const slice = Buffer.concat([Buffer.from([0x65, 0x88]), Buffer.alloc(3_000, 0x01)]);
      const key = [Buffer.from([0x67, 0x42, 0xe0, 0x1f]), Buffer.from([0x68, 0xce]), slice];
      feed.send({ timestamp: 0, data: toAnnexB(key) });
      feed.send({ timestamp: 3000, data: toAnnexB([Buffer.alloc(100, 0x41)]) });
      await viewer.until(() => viewer.rtp.filter(({ header }) => header.marker).length === 2);
      await tap.close();
      expect(frames.map(({ timestamp }) => timestamp)).toEqual([0, 3000]);
      expect(splitAnnexB(Buffer.from(frames[0]!.data))).toEqual(key);

      // A later subscriber waits for a key frame.
      const wish = new Promise<void>((resolve) => (wished = resolve));
      const late = await client('late');
      await late.cycle({ outbound: [videoSlot('film', { codec: { ...H264, payloadType: 120 } })] });
      await wish;
      feed.close();
      feed.close();
    });

    test('sends a packet to each of its receivers once, and to nobody else', async () => {
      const { room, client, event } = await openRoom('packets');
      const open = async (peerId: string): Promise<DataClient> => {
        const wire = await client(peerId);
        await wire.cycle({ data: ['_reliable'] });
        const data = await wire.connectData();
        data.open(0, { label: '_reliable' });
        await data.until(() => data.confirmed.has(0));
        return data;
      };
      const [ann, bob, cat] = [await open('ann'), await open('bob'), await open('cat')];
      const send = (text: string, peerIds: string[]): void =>
        room.do({ type: 'sendPacket', peerIds, label: '_reliable', data: Buffer.from(text) });
      send('hello', ['ann', 'cat', 'somebody who has left']);
      send('end', ['ann', 'bob', 'cat']);
      const heard = async (data: DataClient): Promise<string[]> => {
        await data.until(() => data.messages.at(-1)?.data.toString() === 'end');
        return data.messages.map((message) => message.data.toString());
      };
      expect(await heard(ann)).toEqual(['hello', 'end']);
      expect(await heard(bob)).toEqual(['end']);
      expect(await heard(cat)).toEqual(['hello', 'end']);

      bob.send(0, Buffer.from('thanks'));
      expect(await event('dataPacket', 'bob')).toMatchObject({ label: '_reliable', data: Buffer.from('thanks') });
    });

    test('captures packet headers, and nothing else, in both directions', async () => {
      const { room, client } = await openRoom('capture');
      const publisher = await client('pub');
      const viewer = await client('sub');
      await publisher.cycle({ inbound: [inboundVideo('cam')] });
      await viewer.cycle({ outbound: [videoSlot('cam')] });
      const video = camera(0x101);
      for (const packet of video.vp8Frame({ key: true })) publisher.send(packet);
      await viewer.until(() => viewer.rtp.length === 2);
      const before = await room.capturePackets('pub');
      expect(before).toMatchObject({ dropped: 0, notes: { length: 0 } });
      await room.capturePackets('sub');
      for (const packet of video.vp8Frame({ packets: 3, size: 1000 })) publisher.send(packet);
      await viewer.until(() => viewer.rtp.length === 5);
      const read = async (peerId: string) => [...readCapture((await room.capturePackets(peerId))!.notes)];
      const [received, sent] = [await read('pub'), (await read('sub')).filter(({ length }) => length > 1_000)];
      expect(received.map(({ direction }) => direction)).toEqual(['in', 'in', 'in']);
      expect(sent.map(({ direction }) => direction)).toEqual(['out', 'out', 'out']);
      for (const { header, length, atMs } of [...received, ...sent]) {
        expect(header.length).toBeLessThan(60);
        expect(length).toBeGreaterThan(1_000);
        expect(Math.abs(atMs - Date.now())).toBeLessThan(60_000);
      }
      const ssrcs = (packets: typeof received) => packets.map(({ header }) => Buffer.from(header).readUInt32BE(8));
      expect(ssrcs(received)).toEqual([0x101, 0x101, 0x101]);
      expect(ssrcs(sent)).toEqual(viewer.rtp.slice(2).map(({ header }) => header.ssrc));
      expect((await room.capturePackets('sub', true))?.notes.length).toBe(0);
      for (const packet of video.vp8Frame({})) publisher.send(packet);
      await viewer.until(() => viewer.rtp.length >= 7);
      expect((await room.capturePackets('sub', true))?.notes.length).toBe(0);
      expect(await room.capturePackets('nobody')).toBeUndefined();
    });

    test('asks the publisher for a keyframe and sends it feedback', async () => {
      const { client } = await openRoom('feedback');
      const publisher = await client('pub');
      const viewer = await client('sub');
      await publisher.cycle({ inbound: [inboundVideo('cam')] });
      const video = camera(0x101);
      video.transport = { next: 0 };
      for (const packet of video.vp8Frame({ key: true })) publisher.send(packet);
      await viewer.cycle({ outbound: [videoSlot('cam')] });
      const seen = { pli: false, transportCc: false, report: false };
      const reader = new RtcpReader();
      await publisher.until(() => {
        for (const compound of publisher.rtcp.splice(0)) {
          reader.open(compound);
          while (reader.next()) {
            if (reader.isPli && reader.mediaSsrc === 0x101) seen.pli = true;
            if (reader.isTransportCc) seen.transportCc = true;
            if (reader.type === 201 && reader.count === 1) seen.report = true;
          }
        }
        return seen.pli && seen.transportCc && seen.report;
      });
    });

    test('does not interrupt the media in a new cycle from a new address', async () => {
      const { client } = await openRoom('restart');
      const publisher = await client('pub');
      const viewer = await client('sub');
      const inbound = [inboundVideo('cam')];
      const outbound = [videoSlot('cam')];
      await publisher.cycle({ inbound });
      await viewer.cycle({ outbound });
      const video = camera(0x101);
      let sent = 0;
      const send = (key = false): void => {
        for (const packet of video.vp8Frame({ key })) publisher.send(packet);
        sent += 2;
      };
      send(true);
      await viewer.until(() => viewer.rtp.length >= sent);
      for (let round = 0; round < 3; round++) {
        await viewer.negotiate({ outbound });
        send();
        await viewer.until(() => viewer.rtp.length >= sent);
        await viewer.moveAddress();
        send();
        await viewer.until(() => viewer.rtp.length >= sent);
        await publisher.negotiate({ inbound });
        await publisher.moveAddress();
        send();
        await viewer.until(() => viewer.rtp.length >= sent);
      }
      const numbers = viewer.rtp.map(({ header }) => header.sequenceNumber);
      expect(numbers.map((number) => number - numbers[0]!)).toEqual(Array.from({ length: sent }, (_, i) => i));
    });

    test('switches variants on demand', async () => {
      const { room, events, event, client } = await openRoom('simulcast');
      const publisher = await client('pub');
      const viewer = await client('sub');
      await publisher.cycle({ inbound: [inboundSimulcast('cam')] });
      await viewer.cycle({ outbound: [videoSlot('cam')] });
      const sources = (['l', 'm', 'h'] as const).map((rid, i) => camera(0x30 + i, { rid }));
      const play = (key: boolean): void => {
        for (const source of sources) for (const packet of source.vp8Frame({ key })) publisher.send(packet);
      };
      play(true);
      await event('encodingSwitched');
      room.do({ type: 'setTargetVariant', peerId: 'sub', trackId: 'cam', variant: 'h' });
      room.do({ type: 'setTargetVariant', peerId: 'nobody', trackId: 'cam', variant: 'h' });
      room.do({ type: 'setTargetVariant', peerId: 'sub', trackId: 'nothing', variant: 'h' });
      // The old variant keeps flowing until a keyframe arrives.
      await viewer.until(() => {
        play(true);
        return viewer.rtp.some(({ payload }) => payload[10] === 0x32);
      });
      const switches = (): string[] => events.flatMap((one) => (one.type === 'encodingSwitched' ? [one.variant] : []));
      // The packet may overtake the event.
      await event((one) => one.type === 'encodingSwitched' && one.variant === 'h');
      expect(switches()).toEqual(['m', 'h']);
      const { transports } = await room.stats();
      expect(transports.find(({ peerId }) => peerId === 'pub')!.inbound.map(({ variant }) => variant)).toEqual([
        'l',
        'm',
        'h',
      ]);
      expect(transports.find(({ peerId }) => peerId === 'sub')).toMatchObject({
        iceState: 'connected',
        dtlsState: 'connected',
        protocol: 'udp',
        outbound: [{ trackId: 'cam', variant: 'h', target: 'h', reason: 'other' }],
      });
      room.do({ type: 'setTrackPaused', peerId: 'sub', trackId: 'cam', paused: true });
      const paused = (await room.stats()).transports.find(({ peerId }) => peerId === 'sub');
      expect(paused?.outbound).toMatchObject([{ trackId: 'cam', paused: true }]);
    });

    test('isolates rooms from each other', async () => {
      const one = await openRoom('one');
      const two = await openRoom('two');
      const publisher = await one.client('pub');
      const viewer = await one.client('sub');
      const stranger = await two.client('sub');
      await publisher.cycle({ inbound: [inboundVideo('cam')] });
      await viewer.cycle({ outbound: [videoSlot('cam')] });
      await stranger.cycle({ outbound: [videoSlot('cam')] });
      for (const packet of camera(0x101).vp8Frame({ key: true })) publisher.send(packet);
      await viewer.until(() => viewer.rtp.length >= 2);
      expect(stranger.rtp).toHaveLength(0);
      expect((await one.room.stats()).transports).toHaveLength(2);
      expect((await two.room.stats()).transports).toHaveLength(1);
    });

    test('ignores calls for ended peers and rooms, and refuses their negotiation', async () => {
      const { room, client } = await openRoom('gone');
      const publisher = await client('pub');
      await publisher.cycle({ inbound: [inboundVideo('cam')] });
      room.closeTransport('pub');
      room.closeTransport('pub');
      room.do({ type: 'setTrackMuted', peerId: 'pub', trackId: 'cam', muted: true });
      room.do({ type: 'setTrackBitrates', peerId: 'pub', trackId: 'cam', bitratesBps: { h: 1 } });
      await expect(publisher.negotiate()).rejects.toMatchObject({ code: 'NO_TRANSPORT' });
      await room.close();
      await room.close();
      await expect(publisher.negotiate()).rejects.toMatchObject({ code: expect.stringMatching('NO_TRANSPORT|CLOSED') });
    });

    test("connects a relay client over TCP to its user's room", async () => {
      const { room } = await openRoom('tcp');
      const user = { username: '1900000000:tcp-client', password: 'c2VjcmV0' };
      const { address, tcpPort } = room.openTransport('tcp-client', user);
      const client = await RelayClient.connect(address, tcpPort!);
      expect(await client.allocate(user)).toBe('allocated');
      room.closeTransport('tcp-client');
      expect(await client.closed).toBe(true);
      const late = await RelayClient.connect(address, tcpPort!);
      expect(await late.allocate(user)).toBe('refused');
    });

    test('fails only the client whose certificate does not match the announced one', async () => {
      const { event, client, room } = await openRoom('fingerprint');
      const publisher = await client('pub');
      const viewer = await client('sub');
      await publisher.cycle({ inbound: [inboundVideo('cam')] });
      await viewer.cycle({ outbound: [videoSlot('cam')] });
      const other = await createCertificate();
      const impostor = await WireClient.open(room, 'impostor', other);
      clients.push(impostor);
      await room.negotiate('impostor', {
        generation: 1,
        ice: (impostor.ice = {
          localUfrag: 'iu',
          localPwd: 'impostor-password-server',
          remoteUfrag: 'ru',
          remotePwd: 'impostor-password-client',
        }),
        fingerprint: certificate.fingerprint,
        inbound: [],
        outbound: [],
      });
      await impostor.check();
      impostor.tryHandshake();
      expect(await event('transportFailed')).toMatchObject({ peerId: 'impostor' });
      for (const packet of camera(0x101).vp8Frame({ key: true })) publisher.send(packet);
      await viewer.until(() => viewer.rtp.length >= 2);
    });

    test('leaves nothing behind after two hundred clients come and go', async () => {
      const { room, client } = await openRoom('churn');
      const publisher = await client('pub');
      await publisher.cycle({ inbound: [inboundVideo('cam')] });
      const video = camera(0x101);
      const base = await engine.stats();
      for (let i = 0; i < 200; i++) {
        const peerId = `v${i}`;
        room.openTransport(peerId, { username: `1900000000:${peerId}`, password: 'cA==' });
        await room.negotiate(peerId, {
          generation: 1,
          ice: { localUfrag: `u${i}`, localPwd: `p${i}-0123456789abcdefghij`, remoteUfrag: 'r', remotePwd: 'rp' },
          fingerprint: certificate.fingerprint,
          inbound: [inboundVideo(`cam${i}`)],
          outbound: [videoSlot('cam')],
        });
        if (i % 20 === 0) for (const packet of video.vp8Frame({ key: true })) publisher.send(packet);
        room.closeTransport(peerId);
      }
      const after = await engine.stats();
      expect(after.transports).toBe(base.transports);
      expect(after.rooms).toBe(base.rooms);
      expect((await room.stats()).transports).toHaveLength(1);
    });

    test("opens a room under a closed one's name", async () => {
      const first = await engine.openRoom('again', () => undefined);
      await expect(engine.openRoom('again', () => undefined)).rejects.toMatchObject({ code: 'EXISTS' });
      await first.close();
      const second = await engine.openRoom('again', () => undefined);
      await first.close();
      second.openTransport('p', { username: '1:p', password: 'x' });
      expect((await second.stats()).transports).toHaveLength(1);
      await second.close();
    });
  });
}
