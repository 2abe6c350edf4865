// Tests the sound of calls: a real browser in the room, real phones at the other end, and clocks on both sides.
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, jest, test } from '@jest/globals';
import { decodeG711, encodeG711, FRAME_MS, FramePacer } from '@bloom/sip';
import { middle, printMeasurements, promise } from '../harness/measurements.js';
import { describeWith } from '../harness/needs.js';
import type { Peer } from '../harness/peer.js';
import { Stage } from '../harness/stage.js';
import { PhoneLab, Rooms, until } from './phone-lab.js';
import { answers, answersAt } from './scenarios.js';
import { concat, frequencyOf, readWav, toneFrames, writeWav } from './tone.js';

jest.setTimeout(60_000);

const now = () => performance.timeOrigin + performance.now();
const sleep = (ms: number) => new Promise((wait) => setTimeout(wait, ms));

/** A test phone: RTP with G.711, and the times at which it sends and hears something loud. */
class Handset {
  loud = false;
  /** Arrival time of the first loud packet since `listen`. */
  heardAt: number | undefined;
  /** Send time of the first loud packet since `speak`. */
  spokeAt: number | undefined;
  #quietSince = 0;
  readonly #tone = toneFrames(1000);
  readonly #timer: NodeJS.Timeout;

  private constructor(readonly socket: Socket) {
    const pacer = new FramePacer();
    let sequence = 0;
    let to: { address: string; port: number } | undefined;
    socket.on('message', (data, from) => {
      to = from;
      if (data.length < 13 || (data[1] as number) >= 0x80 + 72) return;
      const isLoud = decodeG711('PCMU', data.subarray(12)).some((sample) => Math.abs(sample) > 1000);
      if (isLoud) this.heardAt ??= now();
      else this.#quietSince ||= now();
      if (isLoud) this.#quietSince = 0;
    });
    this.#timer = setInterval(() => {
      for (let due = pacer.due(performance.now()); due > 0; due -= 1) {
        if (to === undefined) continue;
        const header = Buffer.alloc(12);
        header[0] = 0x80;
        header.writeUInt16BE(sequence & 0xffff, 2);
        header.writeUInt32BE((sequence * 160) >>> 0, 4);
        header.writeUInt32BE(77, 8);
        sequence += 1;
        const sound = this.loud ? encodeG711('PCMU', this.#tone()) : Buffer.alloc(160, 0xff);
        if (this.loud) this.spokeAt ??= now();
        socket.send(Buffer.concat([header, sound]), to.port, to.address);
      }
    }, FRAME_MS / 4);
  }

  static async open(address: string): Promise<Handset> {
    const socket = createSocket('udp4');
    socket.bind(0, address);
    await once(socket, 'listening');
    return new Handset(socket);
  }

  get port(): number {
    return this.socket.address().port;
  }

  /** Returns the time since loud sound last arrived. */
  quietFor(): number {
    return this.#quietSince === 0 ? 0 : now() - this.#quietSince;
  }

  close(): void {
    clearInterval(this.#timer);
    this.socket.close();
  }
}

/**
 * Returns a function that gives the mean time, in ms, that audio has spent in the browser's jitter buffer since this
 * call. The browser chooses it: about 40 ms on a quiet machine, and 200 ms for seconds after pages were loading.
 */
async function jitterBuffer(peer: Peer, track: string): Promise<() => Promise<number>> {
  const report = async () => {
    const inbound = await peer.call('inbound', track);
    if (inbound === null) throw new Error(`no statistics of track ${track}`);
    return inbound;
  };
  const before = await report();
  return async () => {
    const after = await report();
    const emitted = after.jitterBufferEmittedCount - before.jitterBufferEmittedCount;
    return (1000 * (after.jitterBufferDelay - before.jitterBufferDelay)) / emitted;
  };
}

describeWith(['chromium', 'network namespaces', 'phones'], 'the sound of calls', () => {
  let phones: PhoneLab;
  let stage: Stage;
  let rooms: Rooms;

  beforeAll(async () => {
    phones = await PhoneLab.open();
    stage = new Stage({ node: { env: { JF_STRUCTURED_LOGGING: 'true', ...phones.nodeEnv } } });
    await stage.open();
    rooms = new Rooms(stage.node);
    await rooms.listen();
  });
  afterEach(async () => {
    expect(await stage.clear()).toEqual([]);
    await phones.clear();
  });
  afterAll(async () => {
    rooms?.end();
    await stage?.close();
    await phones?.close();
    printMeasurements('the sound of calls');
  });

  /** Puts a browser in a room with a phone that has dialled. */
  async function call(number: string): Promise<{ ann: Peer; room: string; component: string; track: string }> {
    const { ann, room } = await stage.call(['ann']);
    const { id: component } = await rooms.phone(room, phones.proxy.address);
    await rooms.sdk.dial(room, component, number);
    const ofPhone = () => ann.present().find((track) => track.latest.endpointId === component);
    await ann.until('the phone is heard', () => ofPhone() !== undefined);
    const track = (ofPhone() as { id: string }).id;
    await ann.ready(track);
    return { ann, room, component, track };
  }

  /** Returns the loudest frequency that a browser hears. */
  async function heard(ann: Peer, track: string, hz: number): Promise<number> {
    await ann.sounds(track, hz, 15_000);
    return (await ann.call('tone', track)).hz;
  }

  test.each([
    ['G.711', { rate: 8000, channels: 1 }, undefined],
    ['Opus', { rate: 48_000, channels: 2 }, 'opus'],
  ] as const)('lets the browser and baresip with %s hear the tone of each other', async (name, format, codec) => {
    const { rate } = format;
    const wav = join(phones.folder, `tone-${rate}.wav`);
    const next = toneFrames(1000, 8000, rate);
    writeWav(wav, concat(Array.from({ length: 1500 }, next)), format);
    const bob = await phones.baresip('4930', wav, codec);
    const { ann, room, component, track } = await call('4930');
    await ann.addTone(440);
    const inRoom = await heard(ann, track, 1000);
    await sleep(2500);
    await rooms.sdk.hangUp(room, component);
    await ann.removed(track);
    await until('the phone to hang up', () => bob.program.output.includes('terminated'));
    await bob.program.stop();
    const recording = readWav(bob.recording());
    // The last two seconds, because the browser started to speak part-way.
    const atDesk = frequencyOf(recording.slice(-2 * rate), rate);
    console.info(
      `${name}: 1000 Hz heard in the browser as ${inRoom.toFixed(1)}, 440 Hz at the phone as ${atDesk.toFixed(1)}`,
    );
    expect(Math.abs(inRoom - 1000)).toBeLessThan(20);
    expect(Math.abs(atDesk - 440)).toBeLessThan(8.8);
  });

  test('lets the phone hear everything in the room but itself', async () => {
    await phones.sipp(answers);
    const { ann, room, component, track } = await call('200');
    const tone = await ann.addTone(700);
    // sipp echoes what it hears, so the tone returns as the phone's own. If the phone heard itself, that would never
    // end.
    await ann.sounds(track, 700, 15_000);
    await ann.call('setEnabled', tone, false);
    await ann.fallsSilent(track);
    await rooms.sdk.hangUp(room, component);
    await ann.removed(track);
  });

  test('delivers sound within 250 ms each way, not counting the jitter buffer of the browser', async () => {
    const handset = await Handset.open(phones.lab.ownAddress);
    try {
      await phones.sipp(answersAt(phones.lab.ownAddress, handset.port));
      const { ann, room, component, track } = await call('200');
      const tone = await ann.addTone(440);
      await ann.call('setEnabled', tone, false);
      await sleep(1500);
      const toBrowser: number[] = [];
      const toPhone: number[] = [];
      for (let burst = 0; burst < 5; burst += 1) {
        const buffered = await jitterBuffer(ann, track);
        handset.spokeAt = undefined;
        handset.loud = true;
        const heardAt = await ann.page.evaluate(async (id) => {
          for (;;) {
            const { hz, level } = await window.driver.tone(id);
            if (level > 60 && Math.abs(hz - 1000) < 30) return performance.timeOrigin + performance.now();
            await new Promise((wait) => setTimeout(wait, 4));
          }
        }, track);
        toBrowser.push(heardAt - (handset.spokeAt ?? Number.NaN) - (await buffered()));
        handset.loud = false;
        await sleep(400);
      }
      for (let burst = 0; burst < 5; burst += 1) {
        await until('silence', () => handset.quietFor() > 300);
        handset.heardAt = undefined;
        const spokeAt = await ann.page.evaluate((id) => {
          window.driver.setEnabled(id, true);
          return performance.timeOrigin + performance.now();
        }, tone);
        await until('the tone', () => handset.heardAt !== undefined);
        toPhone.push((handset.heardAt ?? Number.NaN) - spokeAt);
        await ann.call('setEnabled', tone, false);
      }
      await rooms.sdk.hangUp(room, component);
      const rounded = (values: number[]) => values.map((value) => value.toFixed(0)).join(' ');
      console.info(`phone to browser ${rounded(toBrowser)} ms, browser to phone ${rounded(toPhone)} ms`);
      // The median, because another process may disturb a single burst.
      promise('phone to browser', middle(toBrowser), 250);
      promise('browser to phone', middle(toPhone), 250);
    } finally {
      handset.close();
    }
  });
});
