import { expect } from '@jest/globals';
import type { Attack } from '../harness/attack.js';
import type { OfferedLine } from '../harness/offer.js';

/** Tracks that one participant may publish, plus some that are already in the room. */
const MOST_ASKED_FOR = 64;
const SENT_AUDIO: OfferedLine = { kind: 'audio', direction: 'sendonly' };
const SENT_VIDEO: OfferedLine = { kind: 'video', direction: 'sendonly' };
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const numbered = (count: number, line: (at: number) => string): string[] =>
  Array.from({ length: count }, (_, at) => line(at));

/** Ways in which a hand-written offer may attack a parser, one per line. */
const EDITS: readonly ((sdp: string) => string)[] = [
  (sdp) => sdp.replace(/^a=mid:.*$/gm, 'a=mid:0'),
  (sdp) => sdp.replace(/^a=group:BUNDLE.*$/m, `a=group:BUNDLE ${numbered(5_000, String).join(' ')}`),
  (sdp) => sdp.replace(/^a=ice-ufrag:.*$/gm, `a=ice-ufrag:${'u'.repeat(100_000)}`),
  (sdp) => sdp.replace(/^a=fingerprint:.*$/gm, 'a=fingerprint:sha-256 00'),
  (sdp) => sdp.replace(/^a=setup:.*$/gm, 'a=setup:passive'),
  (sdp) => sdp.replaceAll('\r\n', '\n'),
  (sdp) => sdp.repeat(20),
  (sdp) => `${sdp}${'a'.repeat(500_000)}`,
  (sdp) => `${sdp}${'a=x\r\n'.repeat(39_000)}`,
  (sdp) => sdp.replace('opus/48000/2', 'opus/48000/99999999999999999999'),
  (sdp) => sdp.replace(/^m=audio 9/gm, 'm=audio 99999999999'),
  (sdp) => sdp.replace(/a=extmap:3 /g, 'a=extmap:0 '),
  (sdp) => sdp.replace(/a=ssrc:\d+/g, 'a=ssrc:18446744073709551616'),
  (sdp) => sdp.replaceAll('a=', 'a=\0'),
  () => '',
  () => '__proto__',
];

export const offers: readonly Attack[] = [
  {
    title: 'an offer of 1,000 tracks',
    async run(ground) {
      const bystander = await ground.bystander();
      const intruder = await ground.intruder();
      const lines = Array.from({ length: 999 }, () => SENT_AUDIO);
      const trackIds = new Map(lines.map((_, mid) => [mid, intruder.trackId()]));
      await intruder.negotiate({ lines, trackIds }).catch(() => undefined);
      await pause(1_500);
      expect(bystander.mostAskedFor).toBeGreaterThan(0);
      expect(bystander.mostAskedFor).toBeLessThanOrEqual(MOST_ASKED_FOR);
    },
  },
  {
    title: 'tracks published repeatedly, ten at a time',
    async run(ground) {
      const bystander = await ground.bystander();
      const intruder = await ground.intruder();
      const lines: OfferedLine[] = [];
      const trackIds = new Map<number, string>();
      for (let round = 0; round < 10 && intruder.isOpen; round += 1) {
        for (let at = 0; at < 10; at += 1) {
          trackIds.set(lines.length, intruder.trackId());
          lines.push(at % 2 === 0 ? SENT_AUDIO : SENT_VIDEO);
        }
        await intruder.negotiate({ lines, trackIds }).catch(() => undefined);
        if (round === 0) await intruder.connectMedia();
        else await (await intruder.wire()).check(intruder.ice).catch(() => undefined);
      }
      await pause(500);
      expect(bystander.mostAskedFor).toBeGreaterThan(0);
      expect(bystander.mostAskedFor).toBeLessThanOrEqual(MOST_ASKED_FOR);
    },
  },
  {
    title: 'offers with a thousand codecs, rids, extensions, sources and receiving lines',
    async run(ground) {
      const extra = [
        ...numbered(1_000, (at) => `a=rid:r${at} send`),
        `a=simulcast:send ${numbered(1_000, (at) => `r${at}`).join(';')}`,
        ...numbered(1_000, (at) => `a=extmap:${at} urn:x:${at}`),
        ...numbered(1_000, (at) => `a=ssrc:${at} cname:c`),
        ...numbered(1_000, (at) => `a=ssrc-group:FID ${at} ${at + 1}`),
        ...numbered(1_000, (at) => `a=rtpmap:${at} VP8/90000`),
        ...numbered(1_000, (at) => `a=rtcp-fb:${at} nack`),
      ];
      for (const lines of [
        [{ ...SENT_VIDEO, extra }],
        Array.from({ length: 900 }, () => ({ kind: 'video', direction: 'recvonly' }) as const),
        Array.from({ length: 900 }, () => ({ kind: 'audio', direction: 'inactive' }) as const),
      ]) {
        const intruder = await ground.intruder();
        await intruder.negotiate({ lines, trackIds: new Map([[0, intruder.trackId()]]) }).catch(() => undefined);
      }
    },
  },
  {
    title: 'offers malformed in every way',
    weight: 3,
    async run(ground) {
      for (const edit of EDITS) {
        const intruder = await ground.intruder();
        const lines = [SENT_AUDIO, SENT_VIDEO];
        const trackIds = new Map(lines.map((_, mid) => [mid, intruder.trackId()]));
        intruder.custom('renegotiateTracks');
        await intruder.next('offerData');
        intruder.offer({ lines, trackIds, edit });
        await pause(30);
      }
    },
  },
  {
    title: "track ids that belong to others, or to nobody's prototype",
    async run(ground) {
      const bystander = await ground.bystander();
      const stolen = [`${bystander.id}:x`, '__proto__', 'constructor', 'x'.repeat(100_000), '\u0000', 'same', 'same'];
      const intruder = await ground.intruder();
      await intruder
        .negotiate({ lines: stolen.map(() => SENT_AUDIO), trackIds: new Map(stolen.entries()) })
        .catch(() => undefined);
      await pause(300);
    },
  },
  {
    title: 'endless unsolicited offers',
    async run(ground) {
      const intruder = await ground.intruder();
      const lines = [SENT_AUDIO, SENT_VIDEO];
      const trackIds = new Map(lines.map((_, mid) => [mid, intruder.trackId()]));
      for (let round = 0; round < 300 && intruder.isOpen; round += 1) {
        intruder.custom('renegotiateTracks');
        intruder.offer({ lines, trackIds });
        await intruder.flushed();
        await pause(5);
      }
    },
  },
  {
    title: 'a track published and removed as often as negotiation allows',
    async run(ground) {
      const intruder = await ground.intruder();
      const until = performance.now() + 4_000;
      let connected = false;
      const lines: OfferedLine[] = [];
      while (performance.now() < until && intruder.isOpen) {
        lines.push(SENT_VIDEO);
        const mid = lines.length - 1;
        await intruder.negotiate({ lines, trackIds: new Map([[mid, intruder.trackId()]]) });
        if (connected) await (await intruder.wire()).check(intruder.ice);
        else await intruder.connectMedia();
        connected = true;
        lines[mid] = { kind: 'video', direction: 'inactive' };
        await intruder.negotiate({ lines, trackIds: new Map() });
        await (await intruder.wire()).check(intruder.ice);
      }
    },
  },
];
