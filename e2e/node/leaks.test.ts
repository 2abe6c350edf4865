// Hundreds of peers with real ICE, DTLS and media come and go, and all of their sockets, timers and buffers must go
// too.
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { freeTcpPort } from '@bloom/net/testing';
import { Publisher } from '@bloom/participant';
import { repository } from '../harness/processes.js';
import { WeriftClient } from '../harness/werift-client.js';

const token = 'development';
const atOnce = 10;

interface Reading {
  heapBytes: number;
  handles: Record<string, number>;
}

let child: ChildProcess;
let url: string;
const folder = mkdtempSync(join(tmpdir(), 'bloom-leaks-'));

beforeAll(async () => {
  child = fork(join(repository, 'e2e', 'node', 'support', 'observed-node.mjs'), [], {
    execArgv: ['--expose-gc'],
    cwd: folder,
    env: {
      PATH: process.env.PATH,
      JF_PORT: String(await freeTcpPort()),
      JF_METRICS_PORT: String(await freeTcpPort()),
      JF_RESOURCES_BASE_PATH: join(folder, 'resources'),
    },
  });
  [{ url }] = (await once(child, 'message')) as [{ url: string }];
}, 60_000);

afterAll(async () => {
  const exited = once(child, 'exit');
  child.disconnect();
  await exited;
  rmSync(folder, { recursive: true, force: true });
});

async function read(): Promise<Reading> {
  const answer = once(child, 'message');
  child.send('measure');
  return ((await answer) as [Reading])[0];
}

async function call(method: string, path: string, body?: unknown): Promise<unknown> {
  const response = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', connection: 'close' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status}`);
  return response.status === 204 ? undefined : ((await response.json()) as { data: unknown }).data;
}

interface Joined {
  leave(): Promise<void>;
}

async function joinRoom(roomId: string, publisher?: Publisher): Promise<Joined> {
  const added = (await call('POST', `/room/${roomId}/peer`, { type: 'webrtc' })) as {
    token: string;
    peer: { id: string };
  };
  const client = await WeriftClient.join(url, added.token, publisher);
  return {
    async leave() {
      await call('DELETE', `/room/${roomId}/peer/${added.peer.id}`);
      await client.closed;
      await client.close();
    },
  };
}

test('keeps handles and heap flat while three hundred peers come and go', async () => {
  const { room } = (await call('POST', '/room')) as { room: { id: string } };
  const publisher = new Publisher('video', 1000);
  const source = await joinRoom(room.id, publisher);
  publisher.start(200);

  const fifty = async () => {
    for (let done = 0; done < 50; done += atOnce) {
      const joined = await Promise.all(Array.from({ length: atOnce }, () => joinRoom(room.id)));
      await Promise.all(joined.map((peer) => peer.leave()));
    }
  };
  // The first peers make the process compile its code and fill its rings of hops and log lines.
  for (let round = 0; round < 3; round += 1) await fifty();
  const before = await read();
  for (let round = 0; round < 3; round += 1) await fifty();
  const after = await read();

  const sockets = ({ handles }: Reading) =>
    Object.fromEntries(Object.entries(handles).filter(([kind]) => /UDP|TCP/.test(kind)));
  expect(sockets(after)).toEqual(sockets(before));
  const timers = ({ handles }: Reading) => handles['Timeout'] ?? 0;
  expect(timers(after)).toBeLessThanOrEqual(timers(before) + 2);
  expect(after.heapBytes / before.heapBytes).toBeLessThan(1.05);

  await source.leave();
}, 600_000);
