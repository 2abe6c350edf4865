// Measures the cost of calls against ffmpeg, with the same sound on the same machine in the same minute.
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { describeWith } from '../harness/needs.js';
import { descendants } from '../harness/processes.js';
import { cpuSeconds, PhoneLab, Rooms, until } from './phone-lab.js';
import { answers } from './scenarios.js';

// Real programs on a busy machine.
jest.setTimeout(90_000);

const CALLS = 20;
const SOURCE_SECONDS = 60;
/** ffmpeg converts a file in one go; a call does so every 20 ms, mixes, and sends and receives RTP on both sides. */
const MAX_RATIO = 8;

describeWith(['nightly', 'network namespaces', 'phones', 'ffmpeg'], 'calls', () => {
  let phones: PhoneLab;
  let rooms: Rooms;
  let sources: string;

  beforeAll(async () => {
    phones = await PhoneLab.open();
    const resources = join(phones.folder, 'resources');
    rooms = await Rooms.start({ ...phones.nodeEnv, JF_RESOURCES_BASE_PATH: resources });
    sources = join(resources, 'file_component_sources');
    mkdirSync(sources, { recursive: true });
  });
  afterAll(async () => {
    await rooms?.stop();
    await phones?.close();
  });

  /** Returns the CPU seconds that it took. */
  function ffmpeg(...args: string[]): number {
    const { stderr } = spawnSync('ffmpeg', ['-v', 'info', '-benchmark', '-y', ...args], { encoding: 'utf8' });
    const [, user, system] = /bench: utime=([\d.]+)s stime=([\d.]+)s/.exec(stderr) ?? [];
    if (user === undefined || system === undefined) throw new Error(`ffmpeg says:\n${stderr}`);
    return Number(user) + Number(system);
  }

  /** Returns the cores that ffmpeg needs for one call's sound: Opus to G.711, and G.711 to Opus. */
  function coresOfFfmpeg(): number {
    const [room, phone] = [join(sources, 'tone.ogg'), join(phones.folder, 'tone.ul')];
    const toPhone = ffmpeg('-i', room, '-ar', '8000', '-f', 'mulaw', phone);
    const toRoom = ffmpeg('-f', 'mulaw', '-ar', '8000', '-ac', '1', '-i', phone, '-c:a', 'libopus', `${phone}.ogg`);
    return (toPhone + toRoom) / SOURCE_SECONDS;
  }

  const parts = () => [rooms.node.pid, ...descendants(rooms.node.pid)];

  /** Returns the cores that the node and each of its processes use. */
  async function cores(ms: number): Promise<number[]> {
    const all = parts();
    const [before, startedAt] = [all.map(cpuSeconds), performance.now()];
    await new Promise((wait) => setTimeout(wait, ms));
    const seconds = (performance.now() - startedAt) / 1000;
    return all.map((pid, at) => (cpuSeconds(pid) - (before[at] as number)) / seconds);
  }

  test(`cost at most ${MAX_RATIO} times as much as ffmpeg, with twenty in twenty rooms and sound both ways`, async () => {
    const tone = `sine=440:duration=${SOURCE_SECONDS}`;
    ffmpeg('-f', 'lavfi', '-i', tone, '-c:a', 'libopus', join(sources, 'tone.ogg'));
    const other = await phones.sipp(answers, CALLS);
    const calls = await Promise.all(
      Array.from({ length: CALLS }, async () => {
        const room = await rooms.room();
        await rooms.sdk.addComponent(room, 'file', { filePath: 'tone.ogg' });
        const { id } = await rooms.phone(room, phones.proxy.address);
        return { room, id };
      }),
    );
    await Promise.all(calls.map(({ room, id }) => rooms.sdk.dial(room, id, '200')));
    for (const { id } of calls) await rooms.tells(id, 'trackAdded', 30_000);
    // Lets the processes of the calls compile their code.
    await new Promise((wait) => setTimeout(wait, 3000));

    const [earlier, each, later] = [coresOfFfmpeg(), await cores(6000), coresOfFfmpeg()];
    for (const { room, id } of calls) await rooms.sdk.hangUp(room, id);
    expect(await other.exit()).toBe(0);
    await until('no process to be left', () => parts().length === 1);
    // The rooms' cost without the calls; the files keep playing.
    const [files = 0] = await cores(3000);

    const ours = (each.reduce((sum, one) => sum + one, 0) - files) / CALLS;
    const ratio = ours / ((earlier + later) / 2);
    const figures = each.map((one) => one.toFixed(3)).join(' ');
    console.info(
      `${ratio.toFixed(1)} times ffmpeg: ${(ours * CALLS).toFixed(2)} cores for ${CALLS} calls (the node and its processes ${figures}, less ${files.toFixed(3)} that go on playing files)`,
    );
    expect(ratio).toBeLessThan(MAX_RATIO);
  });
});
