/** Actor systems on real nodes over loopback, with a private port mapper. */
import type { DistributionNode, NodeOptions } from '@bloom/distribution';
import { silentLog, type Log } from '@bloom/log';
import { PortMapperServer } from '@bloom/port-mapper';
import { openActorSystem, connectActors, type ActorSystem, type RemoteActors, type RemoteOptions } from '../index.js';

export const COOKIE = 'c';

export interface TestMapper {
  readonly port: number;
  close(): Promise<void>;
}

export function startMapper(): Promise<TestMapper> {
  return PortMapperServer.open({ port: 0, log: silentLog });
}

export interface TestNode {
  readonly name: string;
  readonly system: ActorSystem;
  readonly remote: RemoteActors;
  readonly node: DistributionNode;
  stop(): Promise<void>;
}

export interface TestNodeOptions extends Partial<NodeOptions>, Partial<Omit<RemoteOptions, 'log'>> {}

export async function startNode(
  alive: string,
  mapper: TestMapper,
  { maxCalls, maxRunningFunctions, ...options }: TestNodeOptions = {},
): Promise<TestNode> {
  const log: Log = options.log ?? silentLog;
  const name = `${alive}@127.0.0.1`;
  const system = openActorSystem({ log });
  const remote = connectActors(system, {
    log,
    ...(maxCalls === undefined ? {} : { maxCalls }),
    ...(maxRunningFunctions === undefined ? {} : { maxRunningFunctions }),
  });
  const node = await remote.start({
    name,
    mode: 'name',
    cookie: COOKIE,
    tickTimeMs: 8_000,
    mapper: { port: mapper.port },
    log,
    ...options,
  });
  const stop = async (): Promise<void> => {
    await remote.close();
    await system.close();
  };

  return { name, system, remote, node, stop };
}

/** Destroys the connection between two nodes, which immediately dial each other again. */
export function cut({ node }: TestNode, other: TestNode): void {
  node.cut(other.name, 1_000);
  node.uncut(other.name);
}
