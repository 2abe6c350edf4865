import { expect, test } from '@jest/globals';
import { silentLog } from '@bloom/log';
import { LogThrottle } from '@bloom/time';
import { ManualClock } from '@bloom/time/testing';
import { DistributionError, HandshakeFailed, type HandshakeFailure } from '../errors.js';
import { ClusterEvents } from './cluster-events.js';
import { Membership } from './membership.js';

/** Returns the number of attempts to reach a seed within 4 s when each of them fails this way. */
async function attemptsWithin4s(failure: () => Error): Promise<number> {
  const clock = new ManualClock();
  let attempts = 0;
  const membership = new Membership({
    self: 'a@127.0.0.1',
    mode: 'name',
    tool: false,
    announceForeign: false,
    acceptable: () => true,
    disconnect: () => undefined,
    connect: () => {
      attempts += 1;
      return Promise.reject(failure());
    },
    send: () => {},
    guard: (_, run) => run(),
    events: new ClusterEvents(() => clock.wall()),
    random: () => 0.5,
    clock,
    throttle: new LogThrottle(clock),
    log: silentLog,
  });
  membership.seed(['b@127.0.0.1']);
  const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  await settle();
  await clock.advanceAsync(4_000, settle);
  membership.stop();
  return attempts;
}

test.each<HandshakeFailure>(['bad_cookie', 'closed', 'not_allowed', 'missing_flags', 'name_mismatch'])(
  'does not soon dial a node that refuses us (%s) again',
  async (reason) => {
    expect(await attemptsWithin4s(() => new HandshakeFailed('b@127.0.0.1', reason))).toBe(1);
  },
);

test('soon dials an unreachable node again, at growing intervals', async () => {
  const attempts = await attemptsWithin4s(() => new DistributionError('NODE_UNREACHABLE', 'no route'));
  expect(attempts).toBeGreaterThanOrEqual(3);
  expect(attempts).toBeLessThanOrEqual(5);
  expect(await attemptsWithin4s(() => new HandshakeFailed('b@127.0.0.1', 'timeout'))).toBe(attempts);
});
