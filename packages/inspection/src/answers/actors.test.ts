import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { openActorSystem, type ActorSystem, type Behaviour } from '@bloom/actors';
import { silentLog } from '@bloom/log';
import { ManualClock } from '@bloom/time/testing';
import type { Asker } from '../inspector/inspector.js';
import { Redactor } from '../inspector/redact.js';
import { loadSchemas } from '../index.js';
import { ActorSampler } from './actor-lines.js';
import { actorAnswers, type ActorAnswerContext } from './actors.js';

type Clumsy = { fail: (message: object) => void };

const clumsy: Behaviour<Clumsy, null> = {
  kind: 'clumsy',
  init: () => null,
  handlers: {
    fail: () => {
      throw new Error('no luck');
    },
  },
};
const asker = { timeoutMs: 5_000 } as Asker;

describe('answers about actors', () => {
  let clock: ManualClock;
  let system: ActorSystem;

  beforeEach(() => {
    clock = new ManualClock();
    system = openActorSystem({ log: silentLog, clock });
  });
  afterEach(() => system.close());

  const answers = () => {
    const redactor = new Redactor((text) => text);
    return actorAnswers({ self: 'a@x', system, redactor, log: silentLog, clock } as unknown as ActorAnswerContext);
  };

  test("counts the restarts within the window, which alone decide the actor's end", async () => {
    const ref = system.spawn(clumsy, { name: 'clumsy', supervise: 'restart' });
    for (let i = 0; i < 5; i++) {
      await clock.advanceAsync(30_000);
      await expect(system.call(ref, { type: 'fail' })).rejects.toThrow('no luck');
      await system.idle();
    }
    const answer = await answers().actor?.({ id: 'clumsy' }, asker);
    expect(answer).toMatchObject({ restarts: 5, supervision: { maxRestarts: 3, windowMs: 60_000, recent: 2 } });
    const { requests } = await loadSchemas();
    expect(requests.actor.answer.parse(answer)).toEqual(answer);
  });

  test.each([-3_600_000, 3_600_000])(
    'computes rates over the time between two samples even when the clock is set by %d ms',
    async (jump) => {
      const ref = system.spawn(clumsy, { name: 'clumsy', supervise: 'restart', maxRestarts: 100 });
      const sampler = new ActorSampler(system, undefined, clock);
      sampler.sample();
      for (let i = 0; i < 10; i++) system.cast(ref, { type: 'fail' });
      await clock.advanceAsync(2_000, () => system.idle());
      clock.jump(jump);
      const { lines, sampledMs } = sampler.sample();
      expect(lines[0]?.inPerS).toBe(5);
      expect(sampledMs).toBe(2_000);
    },
  );
});
