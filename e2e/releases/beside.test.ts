// Runs nodes of the last release beside nodes of this checkout in one cluster: all promises of a cluster must hold.
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import type { LabCluster } from '../cluster/lab-cluster.js';
import { referenceScenarios } from '../cluster/reference-scenarios.js';
import { describeWith } from '../harness/needs.js';
import { type Release, roomOn, startMixed } from './mixed-cluster.js';

const NAMES: Record<Release, string> = { last: 'the last release', this: 'this checkout' };

for (const releases of [
  ['last', 'this'],
  ['this', 'last'],
] as const) {
  const [first, second] = releases;
  describeWith(
    ['network namespaces', 'the last release'],
    `a node of ${NAMES[first]} that is asked, beside one of ${NAMES[second]}`,
    () => {
      let cluster: LabCluster;
      beforeAll(async () => {
        cluster = await startMixed(releases);
      }, 120_000);
      afterAll(() => cluster?.close());
      beforeEach(() => cluster.deleteAllRooms());

      referenceScenarios(() => cluster, { mixed: true });

      test('drains either node, which gets no rooms from the other and answers for its own until the drain is cancelled', async () => {
        for (const [draining, other] of [
          [cluster.node(1), cluster.node(2)],
          [cluster.node(2), cluster.node(1)],
        ] as const) {
          const room = await roomOn(cluster, cluster.nodes.indexOf(draining) + 1);
          expect((await draining.api.request('POST', '/node/drain')).status).toBe(200);
          for (const asked of [draining, other]) expect((await asked.create()).address).toBe(other.address);
          for (const asked of [draining, other]) expect(await asked.api.room(room)).toMatchObject({ id: room });
          expect((await draining.api.request('DELETE', '/node/drain')).status).toBe(200);
          await cluster.deleteAllRooms();
        }
      });
    },
  );
}
