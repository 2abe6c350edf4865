import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { ManualClock, until } from '@bloom/time/testing';
import { ForkedProcess } from './forked-process.js';

const LOOK_MS = 500;

let folder: string;
let clock: ManualClock;
let child: ForkedProcess<object, string>;
let received: string[];
let crashes: string[];
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'bloom-forked-'));
  writeFileSync(join(folder, 'echo.mjs'), `process.on('message', ({ say }) => process.send(say)); process.send('up');`);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));
beforeEach(async () => {
  clock = new ManualClock();
  received = [];
  crashes = [];
  child = new ForkedProcess<object, string>({
    entry: pathToFileURL(join(folder, 'echo.mjs')),
    hangMs: 5 * LOOK_MS,
    clock,
    onMessage: (message) => received.push(message),
    onCrash: (reason) => crashes.push(reason),
  });
  await until(() => received.length === 1);
});
afterEach(async () => {
  child.kill();
  await child.closed;
});

async function hear(say: string): Promise<void> {
  await child.send({ say });
  await until(() => received.at(-1) === say);
}

test('a process that sends nothing for its time is killed, and leaves no timer behind', async () => {
  clock.advance(5 * LOOK_MS);
  await hear('a sign of life');
  clock.advance(5 * LOOK_MS);
  expect(crashes).toEqual([]);
  clock.advance(LOOK_MS);
  expect(crashes).toEqual(['it has sent nothing for 2500 ms']);
  await child.closed;
  expect(clock.pending).toBe(0);
});

test('a process is not the one that hung when the server stood still', async () => {
  clock.advance(4 * LOOK_MS);
  clock.leap(60_000);
  await hear('here all the time');
  clock.advance(5 * LOOK_MS);
  expect(crashes).toEqual([]);
});
