/** A client that receives on a connection of its own. Runs in the calling thread and on worker threads. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { until } from '@bloom/time/testing';
import { createCertificate, type DtlsCertificate } from '@bloom/webrtc';
import type { MediaEngine, MediaRoomEvent } from '../media-engine.js';
import { audioSlot, inboundAudio, inboundVideo, SyntheticSource, videoSlot } from './synthetic-media.js';
import { WireClient } from './wire-client.js';

export function describeReceivers(name: string, open: () => Promise<MediaEngine>): void {
  describe(`two connections of a client: ${name}`, () => {
    let engine: MediaEngine;
    let certificate: DtlsCertificate;
    const clients: WireClient[] = [];

    beforeAll(async () => {
      certificate = await createCertificate();
      engine = await open();
    });
    afterAll(() => engine.close());
    afterEach(async () => {
      await Promise.all(clients.splice(0).map((client) => client.close()));
    });

    const camera = (ssrc: number): SyntheticSource => new SyntheticSource({ ssrc, payloadType: 96, mid: '1' });

    test('serves a client that receives on a connection of its own', async () => {
      const events: MediaRoomEvent[] = [];
      const room = await engine.openRoom('two connections', (each) => void events.push(each));
      const client = async (peerId: string): Promise<WireClient> => {
        const opened = await WireClient.open(room, peerId, certificate);
        clients.push(opened);
        return opened;
      };
      const publisher = await client('pub');
      const first = await client('sub');
      const receiver = await WireClient.openReceiver(room, 'sub', certificate);
      clients.push(receiver);
      room.do({ type: 'setTrackWithheld', peerId: 'sub', trackId: 'secret', withheld: true });
      await publisher.cycle({ inbound: [inboundVideo('cam'), inboundAudio('secret')] });
      await first.cycle({ inbound: [inboundVideo('own')], data: ['_reliable'] });
      const kind = { ordered: true };
      await receiver.cycle({
        outbound: [videoSlot('cam'), audioSlot('secret')],
        data: { opens: [{ label: '_reliable', protocol: '', kind }] },
      });
      const isUp = (each: MediaRoomEvent): boolean =>
        each.type === 'dtlsConnected' && each.receiver === true && each.peerId === 'sub';
      await until(() => events.some(isUp));

      const video = camera(0x101);
      const secret = new SyntheticSource({ ssrc: 0x201, payloadType: 111, mid: '0' });
      for (const packet of secret.opusFrame()) publisher.send(packet);
      for (const packet of video.vp8Frame({ key: true, packets: 3, size: 1000 })) publisher.send(packet);
      await receiver.until(() => receiver.rtp.length >= 3);
      expect(new Set(receiver.rtp.map(({ header }) => header.ssrc))).toEqual(new Set([0xaaaa0001]));
      expect(first.rtp).toEqual([]);
      expect((await room.stats()).transports.map(({ peerId, outbound }) => [peerId, outbound.length])).toContainEqual([
        'sub',
        2,
      ]);

      const data = await receiver.connectData();
      await data.until(() => data.opened.size === 1);
      room.do({ type: 'sendPacket', peerIds: ['sub'], label: '_reliable', data: Buffer.from('hello') });
      await data.until(() => data.messages.length === 1);
      expect(data.messages[0]?.data.toString()).toBe('hello');

      room.do({ type: 'setTrackPaused', peerId: 'sub', trackId: 'cam', paused: true });
      await room.stats();
      const before = receiver.rtp.length;
      for (const packet of video.vp8Frame({ packets: 3, size: 1000 })) publisher.send(packet);
      expect(await room.closeTransport('sub')).toMatchObject({ peerId: 'sub', outbound: [{}, {}] });
      expect(receiver.rtp.length).toBe(before);
      expect((await room.stats()).transports.map(({ peerId }) => peerId)).toEqual(['pub']);
      expect(events.filter((each) => room.isCurrent(each) && 'peerId' in each && each.peerId === 'sub')).toEqual([]);
      await room.close();
    });
  });
}
