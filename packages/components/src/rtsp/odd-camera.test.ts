// The real process against honest cameras that do what the standards leave open.
import { afterEach, describe, expect, test } from '@jest/globals';
import { silentLog } from '@bloom/log';
import { Processes } from '@bloom/processes';
import { systemClock } from '@bloom/time';
import { until } from '@bloom/time/testing';
import { nativeInstalled } from '../av/native.js';
import { TestRoom } from '../testing/room.js';
import { broadcast, closeServers, described, reply, serve, session } from '../testing/rtsp-server.js';
import type { RtspComponent } from './rtsp-component.js';
import { rtspKind } from './rtsp-kind.js';

const entry = new URL('../../dist/rtsp/engine/puller-main.js', import.meta.url);
const pulling = nativeInstalled() ? describe : describe.skip;
if (!nativeInstalled()) process.stderr.write('*** node-av is not installed, so tests of sources are SKIPPED. ***\n');

const SPS = Buffer.from('Z0LAHtkDxWhAAAADAEAAAAwDxYuS', 'base64');
const PPS = Buffer.from('aMuMsg==', 'base64');
/** One slice. The session description has no parameter sets. */
const IDR = Buffer.from('65b8000102030405', 'hex');
const media = 'm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=fmtp:96 packetization-mode=1\r\na=control:0\r\n';

let component: RtspComponent | undefined;
let sending: NodeJS.Timeout | undefined;
afterEach(async () => {
  clearInterval(sending);
  await component?.close();
  closeServers();
});

/** RTP interleaved in the RTSP connection. */
function rtp(nal: Buffer, { marker, sequence, ssrc }: { marker: boolean; sequence: number; ssrc: number }): Buffer {
  const head = Buffer.alloc(16);
  head.writeUInt16BE(0x2400, 0);
  head.writeUInt16BE(12 + nal.length, 2);
  head.writeUInt16BE(marker ? 0x80e0 : 0x8060, 4);
  head.writeUInt16BE(sequence & 0xffff, 6);
  head.writeUInt32BE(Math.floor(sequence / 10) * 3_600, 8);
  head.writeUInt32BE(ssrc, 12);

  return Buffer.concat([head, nal]);
}

/** Pulls a camera that sends the NAL units `nalsOf` returns for each picture, in order, every 40 ms. */
async function pull(nalsOf: (picture: number) => Buffer[], ssrcOf = (_picture: number) => 7): Promise<TestRoom> {
  let isPlaying = false;
  const { port } = await serve((request, cseq) => {
    if (request.startsWith('DESCRIBE')) return described(session + media, cseq);
    isPlaying ||= request.startsWith('PLAY');
    const setup = 'Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\nSession: 1\r\n';

    return reply('200 OK', cseq, request.startsWith('SETUP') ? setup : 'Session: 1\r\n');
  });
  const room = new TestRoom(systemClock);
  const context = { roomId: 'kitchen', videoCodec: 'h264' } as const;
  const prepared = await rtspKind({ processes: new Processes({ log: silentLog }), entry, hangMs: 10_000 }).prepare(
    { sourceUri: `rtsp://127.0.0.1:${port}/` },
    context,
  );
  component = prepared.start(room.host) as RtspComponent;
  let picture = 0;
  sending = setInterval(() => {
    if (!isPlaying) return;
    const nals = nalsOf(picture);
    for (const [i, nal] of nals.entries()) {
      const sequence = picture * 10 + i + ssrcOf(picture) * 1_000;
      broadcast(rtp(nal, { marker: i === nals.length - 1, sequence, ssrc: ssrcOf(picture) }));
    }
    picture += 1;
  }, 40);

  return room;
}

pulling('camera [needs node-av]', () => {
  test('accepts a camera that sends its parameter sets only in band', async () => {
    const room = await pull(() => [SPS, PPS, IDR]);
    await until(() => room.sent.length >= 5, 20_000);
    expect(room.deeds).toEqual(['open h264']);
  }, 30_000);

  test('accepts a camera that changes its SSRC, and with it the sequence numbers of its packets', async () => {
    const room = await pull(
      () => [SPS, PPS, IDR],
      (picture) => (picture < 20 ? 7 : 40),
    );
    await until(() => room.sent.length >= 60, 20_000);
    expect(room.deeds).toEqual(['open h264']);
  }, 30_000);

  test('gives up a camera that sends no parameter sets at all, and says what to do', async () => {
    const room = await pull(() => [IDR]);
    const inspect = (): { state: string; lostReason: string } =>
      component?.inspect() as { state: string; lostReason: string };
    await until(() => inspect().state === 'waiting', 20_000);
    expect(inspect().lostReason).toContain('lack SPS and PPS');
    expect(room.deeds).toEqual([]);
  }, 30_000);
});
