import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { openActorSystem, later, type ActorSystem, type Behaviour } from '@bloom/actors';
import { ManualClock } from '@bloom/time/testing';
import { silentLog } from '@bloom/log';
import { systemClock } from '@bloom/time';
import type { SinkProtocol, SinkRef, StreamEnded, StreamItems } from '../protocol/wire.js';
import { Stream, type StreamOptions } from './stream.js';

describe('streams', () => {
  let clock: ManualClock;
  let system: ActorSystem;
  let sink: SinkRef;
  let taken: StreamItems[];
  let ends: StreamEnded[];
  let places: number;
  /** The sink's answer; undefined: it does not answer yet. */
  let answer: (() => boolean) | undefined;
  let answers: ((more: boolean) => void)[];

  beforeEach(() => {
    clock = new ManualClock();
    system = openActorSystem({ log: silentLog, clock });
    [taken, ends, answers, places, answer] = [[], [], [], 0, () => true];
    const behaviour: Behaviour<SinkProtocol, null> = {
      kind: 'sink',
      init: () => null,
      handlers: {
        items: (_state, message) => {
          taken.push(message);
          return answer?.() ?? later(new Promise<boolean>((resolve) => answers.push(resolve)));
        },
        ended: (_state, message) => void ends.push(message),
      },
    };
    sink = system.spawn(behaviour);
  });
  afterEach(() => system.close());

  const open = (more: Partial<StreamOptions> = {}): Stream => {
    places++;
    const onEnd = (): void => void places--;
    return new Stream({
      system,
      clock: systemClock,
      node: 'a@h',
      stream: 's',
      sink,
      limit: null,
      withinMs: null,
      onEnd,
      ...more,
    });
  };
  const items = (): unknown[] => taken.flatMap((batch) => batch.items);

  test('delivers items in order and reports the end after the last of them', async () => {
    const stream = open({ limit: 250 });
    let stopped = 0;
    stream.runs(() => void stopped++);
    for (let i = 0; i < 300; i++) expect(stream.push(i)).toBe(i < 250);
    expect(stopped).toBe(1);
    await system.idle();
    expect(items()).toEqual(Array.from({ length: 250 }, (_, i) => i));
    expect(ends).toMatchObject([{ stream: 's', node: 'a@h', reason: 'limit', sent: 250, dropped: 0 }]);
    expect(places).toBe(0);
  });

  test('drops and counts items for which a busy tool has no room, and continues once it has', async () => {
    answer = undefined;
    const stream = open();
    for (let i = 0; i < 3_000; i++) stream.push(i);
    await system.idle();
    expect(stream.dropped).toBeGreaterThan(1_800);
    const dropped = stream.dropped;
    answer = () => true;
    for (const more of answers.splice(0)) more(true);
    await system.idle();
    expect(items()).toHaveLength(3_000 - dropped);
    expect(taken.at(-1)?.dropped).toBe(dropped);
    expect(stream.push('on')).toBe(true);
    stream.end('stopped');
    await system.idle();
    expect(items().at(-1)).toBe('on');
    expect(ends).toMatchObject([{ reason: 'stopped', dropped }]);
  });

  test('delivers the first item at once and gathers later ones', async () => {
    const stream = open();
    stream.push(0);
    await system.idle();
    expect(items()).toEqual([0]);
    for (let i = 1; i < 30; i++) {
      stream.push(i);
      await new Promise((resolve) => setImmediate(resolve));
    }
    stream.end('stopped');
    await system.idle();
    expect(items()).toHaveLength(30);
    expect(taken.length).toBeLessThan(15);
  });

  test('ends as slow when the tool accepts nothing for 5 s', async () => {
    answer = undefined;
    const stream = open();
    stream.push(1);
    await system.idle();
    clock.advance(5_000);
    await system.idle();
    expect(ends).toMatchObject([{ reason: 'slow', sent: 0 }]);
    expect(stream.push(2)).toBe(false);
    expect(places).toBe(0);
  });

  test('ends when the tool has enough or has gone', async () => {
    answer = () => false;
    open().push(1);
    await system.idle();
    expect(ends).toMatchObject([{ reason: 'stopped' }]);

    let stopped = 0;
    const other = open();
    other.runs(() => void stopped++);
    await system.stop(sink);
    await system.idle();
    expect(stopped).toBe(1);
    expect(places).toBe(0);
    expect(other.open).toBe(false);
  });

  test('delays a producer that must not lose anything', async () => {
    answer = undefined;
    const stream = open();
    let written = 0;
    const writing = (async () => {
      for (let i = 0; i < 50; i++) if (await stream.write(i)) written++;
    })();
    await system.idle();
    expect(written).toBeLessThan(10);
    answer = () => true;
    for (const more of answers.splice(0)) more(true);
    await writing;
    stream.end('complete');
    await system.idle();
    expect(items()).toEqual(Array.from({ length: 50 }, (_, i) => i));
    expect(stream.dropped).toBe(0);
    expect(await stream.write('late')).toBe(false);
  });

  test('releases waiting producers when it ends', async () => {
    answer = undefined;
    const stream = open();
    const writing = (async () => {
      for (let i = 0; ; i++) if (!(await stream.write(i))) return i;
    })();
    await system.idle();
    stream.abort('lost');
    expect(await writing).toBeLessThan(20);
    expect(places).toBe(0);
  });

  test('does not report a stream that failed to start', async () => {
    const stream = open();
    stream.abandon();
    await system.idle();
    expect(ends).toEqual([]);
    expect(places).toBe(0);
    let stopped = 0;
    stream.runs(() => void stopped++);
    expect(stopped).toBe(1);
  });

  test('reports why it failed', async () => {
    const stream = open();
    stream.costMs = 0.5;
    stream.countDropped(3);
    stream.end('failed', 'no luck');
    stream.end('limit');
    await system.idle();
    expect(ends).toMatchObject([{ reason: 'failed', message: 'no luck', dropped: 3, costMs: 0.5 }]);
  });
});
