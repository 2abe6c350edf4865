import { existsSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { InspectionError, type OpenStream, type StreamEnded } from '@bloom/inspection';
import type { Asker } from './asker.js';
import { saveStream } from './commands/save.js';
import { printStream } from './streams.js';
import { Context } from './context.js';
import { follow } from './following.js';
import { runTop } from './top/run.js';
import { logView } from './views/logs.js';
import * as answers from './testing/index.js';
import { testMachine } from './testing/machine.js';

const [A, B] = ['a@sfu-1.internal', 'b@sfu-2.internal'] as const;

/** What a node sends before its end; undefined if it does not answer. */
type Script = { items: readonly object[]; reason: StreamEnded['reason'] } | undefined;

function contextOf(scripts: Record<string, Script>) {
  const machine = testMachine();
  const asker: Partial<Asker> = {
    asked: A,
    stream: async (_kind, _fields, { node = A, onItem }): Promise<OpenStream> => {
      const script = scripts[node];
      if (script === undefined) throw new InspectionError('TIMEOUT', `${node} did not answer in time`);
      const ended = (async (): Promise<StreamEnded> => {
        await new Promise((resolve) => setTimeout(resolve, 5));
        for (const item of script.items) if (onItem(item as never, node) === false) break;
        const end = { stream: node, node, message: null, dropped: 0, costMs: null };
        return { ...end, reason: script.reason, sent: script.items.length };
      })();
      return { stream: node, node, limit: null, withinMs: null, ended, stop: () => {} };
    },
  };
  class Scripted extends Context {
    override asker(): Promise<Asker> {
      return Promise.resolve(asker as Asker);
    }
  }

  return { context: new Scripted({ timeout: 1_000 }, machine), printed: machine.printed };
}

const line = { ...answers.log, node: A };

describe('streams of several nodes', () => {
  test.each(['lost', 'slow', 'failed'] as const)('name the node that stopped sending (%s)', async (reason) => {
    const { context, printed } = contextOf({
      [A]: { items: [line], reason: 'stopped' },
      [B]: { items: [], reason },
    });
    await printStream(context, { kind: 'log-tail', document: 'log', fields: {}, nodes: [A, B], view: logView });
    expect(printed.out).toContain('mailbox.high');
    expect(printed.err).toContain(`no more of ${B}`);
    expect(printed.err).not.toContain(A);
  });

  test.each(['limit', 'time'] as const)('say why they ended before the user ended them (%s)', async (reason) => {
    const { context, printed } = contextOf({ [A]: { items: [line], reason } });
    const stream = { kind: 'log-tail', document: 'log', fields: {}, nodes: [A], view: logView } as const;
    await printStream(context, stream);
    expect(printed.err).toBe('');
    await printStream(context, { ...stream, isEndless: true });
    expect(printed.err).toContain(`no more of ${A}: ${reason === 'limit' ? 'limit reached' : 'time is up'}`);
  });

  test('ends all streams together, even one that opens after the others have sent everything', async () => {
    const stopped: string[] = [];
    const asker: Partial<Asker> = {
      asked: A,
      stream: async (_kind, _fields, { node = A, onItem }): Promise<OpenStream> => {
        if (node === A) onItem(line as never, node);
        else await new Promise((resolve) => setTimeout(resolve, 20));
        let finish: (end: StreamEnded) => void = () => {};
        const ended = new Promise<StreamEnded>((resolve) => (finish = resolve));
        const end = {
          stream: node,
          node,
          reason: 'stopped',
          message: null,
          sent: 0,
          dropped: 0,
          costMs: null,
        } as const;
        if (node === A) finish(end);
        const stop = (): void => {
          stopped.push(node);
          finish(end);
        };
        return { stream: node, node, limit: null, withinMs: null, ended, stop };
      },
    };
    const { context } = contextOf({});
    context.asker = () => Promise.resolve(asker as Asker);
    const options = { kind: 'log-tail', fields: {}, nodes: [A, B], limit: 1, onItem: () => true } as const;
    expect(await follow(context, options)).toMatchObject({ items: 1, exit: 0 });
    expect(stopped).toContain(B);
  });

  test('request no more top frames than a node sends', async () => {
    const { context } = contextOf({ [A]: { items: [], reason: 'limit' } });
    const asked: unknown[] = [];
    const asker = await context.asker();
    const { stream } = asker;
    asker.stream = (kind, fields, options) => {
      asked.push(fields);
      return stream(kind, fields, options);
    };
    const options = { nodes: [A], every: 1_000, sort: 'queue', actors: 5, frames: 50_000 } as const;
    await runTop(context, options);
    expect(asked).toMatchObject([{ limit: 100_000 }]);
  });

  test('makes top frames from the nodes that answer', async () => {
    const item = answers.top.find(({ node }) => node === A);
    const { context, printed } = contextOf({ [A]: { items: [item!, item!], reason: 'limit' }, [B]: undefined });
    const options = { nodes: [A, B], every: 250, sort: 'queue', actors: 5, frames: 1 } as const;
    expect(await runTop(context, options)).toBe(0);
    expect(printed.out).toMatch(/^ ?a +\d+ ms/m);
    expect(printed.out).toMatch(/^ ?b +silent/m);
    expect(printed.out.match(/bloomctl top/g)).toHaveLength(1);
    expect(printed.err).toContain(`${B} did not answer`);
  });

  test('makes top frames without a node that is lost before the last one has answered', async () => {
    const item = answers.top.find(({ node }) => node === B);
    const { context, printed } = contextOf({
      [A]: { items: [], reason: 'lost' },
      [B]: { items: [item!, item!], reason: 'limit' },
    });
    const asker = await context.asker();
    const { stream } = asker;
    let lost: Promise<unknown> = Promise.resolve();
    asker.stream = async (kind, fields, options) => {
      if (options.node === B) await lost;
      const opened = stream(kind, fields, options);
      if (options.node === A) lost = opened.then(({ ended }) => ended);
      return await opened;
    };
    const options = { nodes: [A, B], every: 250, sort: 'queue', actors: 5, frames: 1 } as const;
    expect(await runTop(context, options)).toBe(0);
    expect(printed.out).toMatch(/^ ?a +lost/m);
    expect(printed.out).toMatch(/^ ?b +\d+ ms/m);
  });
});

describe('a file sent by a node', () => {
  const folder = mkdtempSync(join(tmpdir(), 'bloomctl-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const save = async (context: Context, file: string) => {
    const fields = { what: 'cpu', forMs: 100, thread: 'main' } as const;
    await saveStream(context, { kind: 'profile', fields, node: A, file, what: 'a profile' });
  };
  const script: Script = {
    items: [{ bytes: Buffer.alloc(70_000) }, { bytes: Buffer.alloc(70_000) }],
    reason: 'complete',
  };

  test('exists once it is complete', async () => {
    const { context, printed } = contextOf({ [A]: script });
    await save(context, join(folder, 'whole'));
    expect(printed.out).toContain('140 kB');
    expect(readdirSync(folder)).toEqual(['whole']);
  });

  // Every write to this device fails as on a full disk.
  (existsSync('/dev/full') ? test : test.skip)('fails on a full disk [needs /dev/full]', async () => {
    const { context, printed } = contextOf({ [A]: script });
    const file = join(folder, 'full');
    symlinkSync('/dev/full', `${file}.part`);
    await expect(save(context, file)).rejects.toMatchObject({
      exit: 64,
      message: expect.stringMatching(/cannot be written: ENOSPC/),
    });
    expect(printed.out).toBe('');
    expect(existsSync(file)).toBe(false);
  });
});
