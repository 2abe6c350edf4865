import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import type { Asker } from '../asker.js';
import { Failure } from '../exit.js';
import { runProgram } from '../program.js';
import * as answers from '../testing/index.js';
import { testMachine } from '../testing/machine.js';
import { DUMP_VERSION, type DumpDocument, type DumpEntry, packDump, unpackDump } from './format.js';
import { Offline } from './offline.js';
import { takeDump } from './take.js';

const B = 'b@sfu-2.internal';
const entry = (kind: string, answer: unknown, fields: DumpEntry['fields'] = {}): DumpEntry => ({
  kind,
  fields,
  node: B,
  answer,
});
const dump: DumpDocument = {
  kind: 'dump',
  v: DUMP_VERSION,
  node: B,
  at: answers.NOW,
  entries: [
    entry('nodes', answers.nodes),
    entry('actors', answers.actors),
    entry('rooms', answers.rooms),
    entry('components', answers.components),
    entry('logs', { lines: [answers.log, { ...answers.log, level: 'info', event: 'room.created' }] }),
    entry('room', answers.room, { room: 'kitchen' }),
    entry('state', answers.state, { id: '/rooms/kitchen', depth: 6 }),
  ],
  failures: [],
};
const offline = new Offline(dump);

describe('a dump', () => {
  test('reads a dump back as it was written', async () => {
    expect(await unpackDump(await packDump(dump), 'x')).toEqual(dump);
  });

  test('refuses a dump of another version, or a file that is not a dump, with an explanation', async () => {
    const bad = [
      { ...dump, v: 2 },
      { ...dump, kind: 'x' },
      { ...dump, entries: [null] },
      { ...dump, entries: 5 },
      null,
      7,
    ];
    for (const value of bad) {
      await expect(unpackDump(gzipSync(JSON.stringify(value)), 'x')).rejects.toMatchObject({
        name: 'Failure',
        exit: 64,
      });
    }
    await expect(unpackDump(gzipSync('{'), 'x')).rejects.toThrow('x is not a dump');
  });

  test('refuses garbage', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.uint8Array(),
          fc.json().map((text) => gzipSync(text)),
        ),
        async (bytes) => {
          await expect(unpackDump(Buffer.from(bytes), 'x')).rejects.toBeInstanceOf(Failure);
        },
      ),
      { numRuns: fuzzRuns(1_000) },
    );
  });

  test('answers the requests that were made when it was taken', async () => {
    expect(await offline.ask('nodes', {})).toEqual({ node: B, answer: answers.nodes });
    expect((await offline.ask('room', { room: 'kitchen' })).answer).toEqual(answers.room);
    expect((await offline.ask('state', { id: 'rooms/kitchen' })).answer.kind).toBe('room');
    expect((await offline.ask('state', { id: 'rooms/kitchen#7' }, { node: B })).answer.kind).toBe('room');
  });

  test('narrows its lists as a node would', async () => {
    const actors = async (fields: Parameters<typeof offline.ask<'actors'>>[1]) =>
      (await offline.ask('actors', fields)).answer;
    expect((await actors({ match: 'rooms/kitchen/**' })).matched).toBe(3);
    expect((await actors({ sort: 'queue', limit: 1 })).actors.map(({ queue }) => queue)).toEqual([917]);
    expect((await actors({})).actors[0]?.path).toBe('/rooms');
    expect((await offline.ask('rooms', { match: 'kit*' })).answer.rooms).toHaveLength(1);
    expect((await offline.ask('components', { room: 'hall' })).answer.total).toBe(0);
    const logs = (await offline.ask('logs', { level: 'warning' })).answer.lines;
    expect(logs.map(({ event }) => event)).toEqual(['mailbox.high']);
    expect((await offline.ask('logs', { match: 'CREATED' })).answer.lines).toHaveLength(1);
  });

  test('shows the requested part of a state', async () => {
    const whole = (await offline.ask('state', { id: 'rooms/kitchen' })).answer.state as Record<string, unknown>;
    const [name = ''] = Object.keys(whole);
    const { state } = (await offline.ask('state', { id: 'rooms/kitchen', path: name })).answer;
    expect(state).toEqual(whole[name]);
    expect((await offline.ask('state', { id: 'rooms/kitchen', path: 'nothing' })).answer.state).toBeNull();
  });

  test('says what it does not contain', async () => {
    await expect(offline.ask('room', { room: 'hall' })).rejects.toMatchObject({
      exit: 65,
      message: `the dump of ${B} has no room of hall`,
    });
    await expect(offline.ask('nodes', {}, { node: 'a@x' })).rejects.toMatchObject({ exit: 65 });
    await expect(offline.ask('load', {})).rejects.toThrow('has no load');
    await expect(offline.stream('trace')).rejects.toMatchObject({ exit: 64 });
  });

  test('names the nodes missing from a list', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'bloomctl-'));
    const file = join(folder, 'dump');
    const links = { self: B, links: answers.partial.views.find(({ node }) => node === B)?.links };
    const entries = [entry('links', links), entry('faults', answers.faults)];
    writeFileSync(file, await packDump({ ...dump, entries }));
    const machine = testMachine();
    expect(await runProgram(['--dump', file, 'faults', '--all'], machine)).toBe(0);
    expect(machine.printed.out).toMatch(/^b@sfu-2.internal:$/m);
    expect(machine.printed.out).toMatch(/^a@sfu-1.internal does not answer: /m);
    rmSync(folder, { recursive: true });
  });

  test('shows durations as of the time it was taken, however late it is read', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'bloomctl-'));
    const file = join(folder, 'dump');
    const entries = [
      entry('cluster', answers.partial),
      entry('faults', answers.faults),
      entry('actor', { ...answers.actor, suspendedUntil: answers.NOW + 5_000 }, { id: '/x' }),
    ];
    writeFileSync(file, await packDump({ ...dump, entries }));
    const read = async (now: number): Promise<string> => {
      const machine = testMachine();
      for (const command of [['cluster'], ['faults'], ['actor', 'x']]) {
        expect(await runProgram(['--dump', file, ...command], { ...machine, now: () => now })).toBe(0);
      }
      return machine.printed.out;
    };
    expect(await read(answers.NOW + 86_400_000)).toBe(await read(answers.NOW));
    rmSync(folder, { recursive: true });
  });

  test('contains every answer, and notes which requests failed', async () => {
    // A dump answers like a node, so a dump can be taken of it.
    const again = await takeDump(offline as Asker, B, () => 5);
    expect(again.entries.map(({ kind }) => kind)).toEqual(
      expect.arrayContaining(['nodes', 'actors', 'rooms', 'components', 'logs', 'room', 'state']),
    );
    expect(again.failures.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['hello', 'load', 'ps', 'peer']));
    expect(again.at).toBe(5);
  });
});
