// Calls of a room that moves to another node.
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, jest, test } from '@jest/globals';
import { describeWith } from '../harness/needs.js';
import { type Pair, startPair } from '../hls/pair.js';
import { PhoneLab, Rooms, until } from './phone-lab.js';
import { answersOnce } from './scenarios.js';
import { concat, frequencyOf, readWav, toneFrames, writeWav } from './tone.js';

// Real programs on a busy machine.
jest.setTimeout(60_000);

describeWith(['network namespaces', 'phones', 'ffmpeg'], 'a telephone call whose room moves to another node', () => {
  let phones: PhoneLab;
  let pair: Pair;
  let from: Rooms;
  let to: Rooms;

  beforeAll(async () => {
    phones = await PhoneLab.open();
    const addresses: Record<string, string> = { one: phones.lab.addOwnAddress(), two: phones.lab.ownAddress };
    pair = await startPair((alive) => ({
      ...phones.nodeEnv,
      JF_SIP_IP: addresses[alive] as string,
      JF_STRUCTURED_LOGGING: 'true',
    }));
    from = new Rooms(pair.two);
    to = new Rooms(pair.one);
    await to.listen();
  });
  afterEach(() => phones.clear());
  afterAll(async () => {
    to?.end();
    await pair?.stop();
    await phones?.close();
  });

  /** Calls a number from a room with a tone on the second node. */
  async function call(number: string): Promise<{ room: string; id: string; track: string | undefined }> {
    const room = await pair.roomOnTwo();
    await from.sdk.addComponent(room, 'file', { filePath: 'tone.ogg' });
    const { id } = await from.phone(room, phones.proxy.address);
    await from.sdk.dial(room, id, number);
    await to.tells(id, 'trackAdded');

    return { room, id, track: await trackOf(room, id) };
  }

  async function trackOf(room: string, id: string): Promise<string | undefined> {
    const { components } = await to.sdk.getRoom(room);

    return components.find((component) => component.id === id)?.tracks?.[0]?.id;
  }

  /** Returns when a node logged an event, in Unix milliseconds: both have the clock of this machine. */
  function timeOf(rooms: Rooms, id: string, message: string): number {
    return Date.parse(rooms.log(id).find((line) => line.message === message)?.time ?? '');
  }

  async function move(room: string): Promise<void> {
    const ask = () => pair.one.api.request('POST', `/room/${room}/move`, { node: pair.one.name });
    // A busy machine may miss the time limits of a move.
    for (let answer = await ask(); answer.status !== 200; answer = await ask()) {
      if (answer.status !== 503 && answer.status !== 409) throw new Error(answer.body.errors);
      await delay(200);
    }
  }

  test('goes on there with the same phone and the same track', async () => {
    const wav = join(phones.folder, 'moved.wav');
    writeWav(wav, concat(Array.from({ length: 1500 }, toneFrames(1000))));
    const bob = await phones.baresip('4930', wav);
    const { room, id, track } = await call('4930');
    // What the phone hears is judged by its recording.
    await delay(2_000);
    await move(room);
    await to.logs(id, 'sip.call_moved');
    await delay(3_000);
    expect(await trackOf(room, id)).toBe(track);
    expect(to.of(id)).toEqual(['trackAdded']);
    expect(bob.program.output).not.toContain('terminated');
    expect(await from.logs(id, 'sip.call_ended')).toMatchObject({ reason: 'moved' });
    await to.sdk.hangUp(room, id);
    await until('the phone to be hung up', () => bob.program.output.includes('terminated'));
    expect(await to.logs(id, 'sip.call_ended')).toMatchObject({ reason: 'hung_up' });
    await to.tells(id, 'trackRemoved');
    await bob.program.stop();
    const heard = readWav(bob.recording());
    expect(Math.abs(frequencyOf(heard.slice(-8_000)) - 440)).toBeLessThan(8.8);
    const pauseMs = timeOf(to, id, 'sip.call_moved') - timeOf(from, id, 'sip.call_ended');
    console.info(`the call was on neither node for ${pauseMs} ms`);
    expect(pauseMs).toBeLessThan(3_000);
  });

  test('is hung up, with a line in the log, where the provider refuses the change', async () => {
    const other = await phones.sipp(answersOnce);
    const { room, id } = await call('200');
    await move(room);
    expect(await to.logs(id, 'sip.call_not_moved')).toMatchObject({ number: '200', answer: '488 Not Acceptable Here' });
    expect(await other.exit()).toBe(0);
    expect((await to.sdk.getRoom(room)).components.map((component) => component.id)).toContain(id);
  });
});
