import { createLogger } from '@bloom/log';
import { PortMapperServer } from '@bloom/port-mapper';
import { until } from '@bloom/time/testing';
import { startTestNode, type TestNode } from './test-node.js';

/** Long, because two nodes that start on a busy machine take their time. */
const LIMIT_MS = 100_000;

/** A cluster of two nodes in this process. Rooms are created on the first one, which a test closes. */
export interface TestPair {
  closes: TestNode;
  /** Takes no rooms until a test calls `rooms.undrain('starting')`. */
  stays: TestNode;
  /** What both have logged. */
  lines: string[];
  dispose: () => Promise<void>;
}

export async function startPair(env: Record<string, string>): Promise<TestPair> {
  const lines: string[] = [];
  const log = createLogger({ sink: (line) => lines.push(line) });
  const mapper = await PortMapperServer.open({ port: 0, log });
  const names = ['closes@127.0.0.1', 'stays@127.0.0.1'];
  const start = (name: string): Promise<TestNode> =>
    startTestNode(
      {
        JF_DIST_ENABLED: 'true',
        JF_DIST_MODE: 'name',
        JF_DIST_NODE_NAME: name,
        JF_DIST_COOKIE: 'a_cookie_for_the_tests_of_pairs',
        JF_DIST_IP: '127.0.0.1',
        JF_DIST_NODES: names.join(' '),
        JF_SECRET_KEY_BASE: 'a secret that both members have',
        ERL_EPMD_PORT: String(mapper.port),
        ...env,
      },
      { log },
    );
  const [closes, stays] = await Promise.all([start('closes@127.0.0.1'), start('stays@127.0.0.1')]);
  await until(() => [closes, stays].every(({ cluster }) => cluster?.node.nodes('members').length === 1), LIMIT_MS);
  stays.rooms.drain('starting');

  const dispose = async (): Promise<void> => {
    for (const node of [closes, stays]) {
      // Else it waits for them until its drain timeout.
      await Promise.all(node.rooms.roomIds().map((roomId) => node.rooms.deleteRoom(roomId)));
      await node.dispose();
    }
    await mapper.close();
  };

  return { closes, stays, lines, dispose };
}
