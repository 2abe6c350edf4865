import { setTimeout as pause } from 'node:timers/promises';
import { expect } from '@jest/globals';
import type { TestClient } from '@bloom/webrtc/testing';
import { ExtensionProfiles } from 'werift';
import { flood } from '../harness/flood.js';
import type { Attack, Ground } from '../harness/attack.js';
import { ssrcOf } from '../harness/offer.js';
import { fir, nack, pli, remb, Rtcp, rtcp, rtcpOfLength, transportCc, words } from '../harness/rtcp.js';
import { countMedia, Sender } from '../harness/sender.js';

const FLOOD_MS = 3_000;
/** Maximum that the node may send to a subscriber of one small video, however often it asks. */
const MAX_BYTES_PER_S = 2.5e6;

const SDES = 'urn:ietf:params:rtp-hdrext:sdes';
const AUDIO_LEVEL = 'urn:ietf:params:rtp-hdrext:ssrc-audio-level';
const VOICES = 10;
const MAX_VOICE_CHANGES_PER_S = 4;

interface Connected {
  readonly wire: TestClient;
  readonly sender: Sender;
  /** SSRCs that the node sends. */
  readonly sources: readonly number[];
}

/** Connects an intruder that publishes a video and receives the call's. */
async function connected(ground: Ground): Promise<Connected> {
  const intruder = await ground.intruder();
  await intruder.negotiate({
    lines: [
      { kind: 'video', direction: 'sendonly' },
      { kind: 'video', direction: 'recvonly' },
    ],
    trackIds: new Map([[0, intruder.trackId()]]),
  });
  const wire = await intruder.connectMedia();
  const sources = [...intruder.answer.matchAll(/^a=ssrc:(\d+)/gm)].map(([, ssrc]) => Number(ssrc));
  return { wire, sender: new Sender(wire, ssrcOf(0)), sources: [...new Set(sources)] };
}

/** Seals and sends one compound after another. */
async function controlFlood({ wire }: Connected, next: () => Buffer): Promise<void> {
  await flood(() => wire.sendPacket(wire.srtcp?.encrypt(next()) ?? Buffer.alloc(0)), { perGroup: 10, pauseMs: 10 });
}

export const media: readonly Attack[] = [
  {
    title: 'hundreds of requests per second for every packet and for key frames',
    weight: 2,
    async run(ground) {
      const client = await connected(ground);
      const { random } = ground;
      const count = countMedia(client.wire);
      await controlFlood(client, () => {
        const ssrc = random.pick(client.sources);
        const firsts = Array.from({ length: 60 }, (_, at) => random.below(65_536) + at * 17);
        return Buffer.concat([rtcp(Rtcp.rr, 0, words(1)), nack(ssrc, firsts), pli(ssrc), fir(ssrc, random.below(256))]);
      });
      expect(count.bytes / (FLOOD_MS / 1000)).toBeLessThan(MAX_BYTES_PER_S);
    },
  },
  {
    title: 'a thousand requests for the same packets',
    async run(ground) {
      const client = await connected(ground);
      const [ssrc = 0] = client.sources;
      await pause(500);
      const count = countMedia(client.wire);
      await controlFlood(client, () => {
        const all = Array.from({ length: 300 }, (_, at) => at * 17);
        return Buffer.concat([rtcp(Rtcp.rr, 0, words(1)), nack(ssrc, all)]);
      });
      expect(count.bytes / (FLOOD_MS / 1000)).toBeLessThan(MAX_BYTES_PER_S);
    },
  },
  {
    title: 'reports on streams of others, BYEs in their names and absurd estimates',
    weight: 3,
    async run(ground) {
      const client = await connected(ground);
      const { random } = ground;
      const report = (): number[] => [
        random.pick(client.sources),
        ...Array.from({ length: 5 }, () => random.below(2 ** 32)),
      ];
      const kinds: readonly (() => Buffer)[] = [
        () => rtcp(Rtcp.sr, 31, words(ssrcOf(0), ...Array.from({ length: 5 + 31 * 6 }, () => random.below(2 ** 32)))),
        () => rtcp(Rtcp.rr, 31, words(1, ...Array.from({ length: 31 }, report).flat())),
        () =>
          rtcp(Rtcp.bye, 31, words(...Array.from({ length: 31 }, () => random.pick([ssrcOf(0), ...client.sources])))),
        () => rtcp(Rtcp.sdes, 31, random.bytes(400)),
        () => rtcp(Rtcp.app, random.below(32), random.bytes(400)),
        () => rtcp(Rtcp.xr, random.below(32), random.bytes(400)),
        () => remb(client.sources, random.pick([0, 1, 30, 46, 63]), random.pick([0, 1, 0x3ffff])),
        () => remb([], 63, 0x3ffff),
        () =>
          transportCc(
            { base: random.below(65_536), count: random.pick([0, 1, 65_535]) },
            Array.from({ length: 40 }, () => random.below(65_536)),
            random.bytes(200),
          ),
        () =>
          transportCc(
            { base: 0, count: 65_535 },
            Array.from({ length: 8 }, () => 0x1fff),
            Buffer.alloc(0),
          ),
        () => rtcpOfLength(0xffff, { type: Rtcp.rr, count: 1 }, words(1)),
        () => rtcp(Rtcp.transportFeedback, 31, random.bytes(40)),
        () => rtcp(Rtcp.payloadFeedback, random.below(32), random.bytes(1_000)),
      ];
      await controlFlood(client, () => Buffer.concat([rtcp(Rtcp.rr, 0, words(1)), random.pick(kinds)()]));
    },
  },
  {
    title: 'media that is replayed, modified, out of order or from streams never offered',
    weight: 3,
    async run(ground) {
      const { wire, sender } = await connected(ground);
      const { random } = ground;
      await flood(() => {
        const sealed = sender.send();
        for (let at = 0; at < 5; at += 1) wire.sendPacket(sealed);
        const changed = Buffer.from(sealed);
        changed[random.below(changed.length)] = random.below(256);
        wire.sendPacket(changed);
        sender.send(
          { ssrc: random.below(2 ** 32), payloadType: random.below(128) },
          random.bytes(1 + random.below(1_100)),
        );
        sender.send(
          { sequenceNumber: random.below(65_536), timestamp: random.below(2 ** 32) },
          random.bytes(2 + random.below(1_000)),
        );
        sender.send({ payloadType: 97 }, random.bytes(random.pick([1, 2, 3, 500])));
      });
    },
  },
  {
    title: 'an SSRC, a rid and a payload type of their own for every packet',
    weight: 2,
    async run(ground) {
      const intruder = await ground.intruder();
      const extra = [
        `a=extmap:4 ${SDES}:mid`,
        `a=extmap:10 ${SDES}:rtp-stream-id`,
        'a=rid:h send',
        'a=simulcast:send h',
      ];
      await intruder.negotiate({
        lines: [{ kind: 'video', direction: 'sendonly', extra }],
        trackIds: new Map([[0, intruder.trackId()]]),
      });
      const sender = new Sender(await intruder.connectMedia(), ssrcOf(0));
      const { random } = ground;
      await flood(() => {
        const rid = random.pick([Buffer.from('h'), random.bytes(255), Buffer.alloc(0)]);
        sender.send({
          ssrc: random.below(2 ** 32),
          payloadType: random.pick([96, 97, random.below(128)]),
          extension: true,
          extensionProfile: ExtensionProfiles.TwoByte,
          extensions: [
            { id: 4, payload: Buffer.from(random.pick(['0', '1'])) },
            { id: 10, payload: rid },
          ],
        });
      });
    },
  },
  {
    title: 'ten voices that start and stop fifty times a second',
    async run(ground) {
      const bystander = await ground.bystander();
      const intruder = await ground.intruder();
      const lines = Array.from(
        { length: VOICES },
        () => ({ kind: 'audio', direction: 'sendonly', extra: [`a=extmap:1 ${AUDIO_LEVEL}`] }) as const,
      );
      await intruder.negotiate({ lines, trackIds: new Map(lines.map((_, mid) => [mid, intruder.trackId()])) });
      const wire = await intruder.connectMedia();
      const voices = lines.map((_, mid) => new Sender(wire, ssrcOf(mid)));
      const before = bystander.seen('vadNotification');
      const speakOrNot = (group: number): void => {
        const level = Buffer.from([group % 2 === 0 ? 0x80 : 0x7f]);
        const header = {
          payloadType: 111,
          extension: true,
          extensionProfile: ExtensionProfiles.OneByte,
          extensions: [{ id: 1, payload: level }],
        };
        for (const voice of voices) voice.send(header, Buffer.alloc(60));
      };
      await flood(speakOrNot, { lastsMs: FLOOD_MS, pauseMs: 10 });
      await pause(300);
      const perSecond = (bystander.seen('vadNotification') - before) / (FLOOD_MS / 1000);
      expect(perSecond).toBeLessThan(VOICES * MAX_VOICE_CHANGES_PER_S);
    },
  },
  {
    title: 'a video of 60 Mbit/s that no subscriber needs',
    maxGapMs: 4_000,
    async run(ground) {
      const { sender } = await connected(ground);
      await flood(() => sender.send({}, Buffer.alloc(1_100)), { perGroup: 35 });
    },
  },
];
