/** Complete nodes over loopback, with real rooms and media in this process, and a hidden tool node. */
import { connectActors, openActorSystem, type ActorSystem, type RemoteActors } from '@bloom/actors';
import { type DistributionNode, PROTOCOLS } from '@bloom/distribution';
import { createLogger, silentLog, type Logger } from '@bloom/log';
import { PortMapperServer } from '@bloom/port-mapper';
import {
  RoomRegistry,
  createClusterPort,
  followMembers,
  RoomHost,
  RoomRouter,
  type ComponentKind,
  type CreatePeerSession,
  type SessionAction,
} from '@bloom/rooms';
import { openMediaEngine, type MediaEngine } from '@bloom/sfu';
import { InspectionClient, openInspection, type Inspection, type InspectionMode } from '../index.js';

export const COOKIE = 'a cookie that nobody must see';
export const SECRET = 'the secret key base of the tests';

export function startMapper(): Promise<PortMapperServer> {
  return PortMapperServer.open({ port: 0, log: silentLog });
}

export interface Member {
  name: string;
  system: ActorSystem;
  remote: RemoteActors;
  node: DistributionNode;
  host: RoomHost;
  rooms: RoomRouter;
  registry: RoomRegistry;
  log: Logger;
  engine: MediaEngine;
  inspection: Inspection | undefined;
  stop(): Promise<void>;
}

export interface MemberOptions {
  seeds?: readonly string[];
  mode?: InspectionMode | 'off';
  componentKinds?: readonly ComponentKind[];
}

/** A session whose client sends actions as JSON. */
const scripted: CreatePeerSession = () => ({
  handle: (input) => (input.type === 'clientEvent' ? (JSON.parse(input.text) as SessionAction[]) : []),
  descriptions: () => ({}),
});

export async function startMember(
  alive: string,
  mapper: { port: number },
  { seeds = [], mode = 'full', componentKinds = [] }: MemberOptions = {},
): Promise<Member> {
  const name = `${alive}@127.0.0.1`;
  const log = createLogger({ sink: () => {}, secrets: [COOKIE, SECRET] });
  const system = openActorSystem({ log });
  const remote = connectActors(system, { log });
  const engine = await openMediaEngine({
    listenIp: '127.0.0.1',
    announcedIp: '127.0.0.1',
    portRange: { min: 0, max: 0 },
    log,
  });
  const host = new RoomHost({
    system,
    engine,
    createSession: scripted,
    events: (notification) => registry.observe(notification),
    log,
    address: `${alive}.example:5002`,
    secretKeyBase: SECRET,
    webrtcEnabled: true,
    componentKinds,
  });
  const registry = new RoomRegistry({
    system,
    port: createClusterPort({ system, remote, self: name }),
    host,
    log,
  });
  const rooms = new RoomRouter({ system, host, registry, log, secretKeyBase: SECRET });
  const node = await remote.start({
    name,
    mode: 'name',
    cookie: COOKIE,
    mapper: { port: mapper.port },
    tickTimeMs: 8_000,
    spoken: { release: '1.2.3', protocols: PROTOCOLS },
    log,
  });
  followMembers(node, registry);
  node.seed(seeds);
  const parts = { version: '1.2.3', gitCommit: 'abc', startedAt: Date.now(), system, remote, node, engine, log };
  const inspection =
    mode === 'off' ? undefined : await openInspection({ ...parts, host, registry, secrets: [COOKIE, SECRET] }, mode);
  const stop = async (): Promise<void> => {
    await inspection?.close();
    await host.deleteAll();
    await remote.close();
    await system.close();
    await engine.close();
  };

  return { name, system, remote, node, host, rooms, registry, log, engine, inspection, stop };
}

export interface Tool {
  name: string;
  system: ActorSystem;
  remote: RemoteActors;
  node: DistributionNode;
  client: InspectionClient;
  stop(): Promise<void>;
}

/** Starts a hidden node with one link, as bloomctl does. */
export async function startTool(asked: Member, mapper: { port: number }, alive = 'bloomctl-1-test'): Promise<Tool> {
  const name = `${alive}@127.0.0.1`;
  const system = openActorSystem({ log: silentLog });
  const remote = connectActors(system, { log: silentLog });
  const node = await remote.start({
    name,
    mode: 'name',
    cookie: COOKIE,
    tool: true,
    listen: false,
    mapper: { port: mapper.port },
    tickTimeMs: 8_000,
    log: silentLog,
  });
  await node.connect(asked.name);
  const client = new InspectionClient({ system, remote, asked: asked.name, tool: name });
  const stop = async (): Promise<void> => {
    await remote.close();
    await system.close();
  };

  return { name, system, remote, node, client, stop };
}

/** Joins a room as a client with scripted actions. */
export async function joinRoom(
  { rooms }: Member,
  roomId: string,
): Promise<{ id: string; token: string; act(...actions: SessionAction[]): void }> {
  const { peer, token } = await rooms.addPeer(roomId, {});
  const socket = { send: () => {}, close: () => {}, ping: () => Promise.resolve(true) };
  const attached = await rooms.attachPeer(token, socket);
  if (typeof attached === 'string') throw new Error(attached);
  const act = (...actions: SessionAction[]): void => attached.receive(JSON.stringify(actions));
  act({ type: 'join', metadata: { name: 'Ann', token: 'a token in the metadata' } });

  return { id: peer.id, token, act };
}
