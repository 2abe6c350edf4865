// Checks the document of every command strictly against the published schema.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { apiToken } from '../harness/bloom-node.js';
import { describeWith, missing } from '../harness/needs.js';
import { Stage } from '../harness/stage.js';
import { PeerConnection } from '../node/support/peer-socket.js';
import { LABELS, secrets, Trio } from './trio.js';

jest.setTimeout(60_000);

let trio: Trio;
let schemas: Map<string, ValidateFunction>;
const seen = new Set<string>();
const resources = mkdtempSync(join(tmpdir(), 'bloomctl-resources-'));
const PART = 'part_2026-01-02T03-04-05.000Z';

beforeAll(async () => {
  // What a node that crashed has left of a recording, long enough ago not to be in progress.
  const folder = join(resources, 'raw_recordings', 'attic', PART);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'track.rtpx'), 'media');
  const before = Date.now() / 1_000 - 600;
  for (const path of [join(folder, 'track.rtpx'), folder]) utimesSync(path, before, before);
  trio = await Trio.start({ c: { JF_RESOURCES_BASE_PATH: resources } });
  writeFileSync(join(trio.folder, 'token'), apiToken, { mode: 0o600 });
  const ajv = new Ajv2020({ allErrors: true, strict: false });
  const { schemas: documents } = await trio.document('schema');
  schemas = new Map(Object.entries(documents as object).map(([kind, schema]) => [kind, ajv.compile(schema as object)]));
}, 120_000);
afterAll(async () => {
  await trio?.stop();
  rmSync(resources, { recursive: true, force: true });
});

// oxlint-disable-next-line typescript/no-explicit-any -- JSON of another program
function check(document: any, kind: string): any {
  expect(document.kind).toBe(kind);
  const validate = schemas.get(kind);
  if (!validate) throw new Error(`no schema of ${kind}`);
  const fits = validate(document);
  expect({ kind, errors: validate.errors ?? [] }).toEqual({ kind, errors: [] });
  expect(fits).toBe(true);
  seen.add(kind);
  return document;
}

async function documentOf(kind: string, ...args: string[]) {
  return check(await trio.document(...args), kind);
}

describe('documents', () => {
  test('describe the cluster by the schema', async () => {
    const nodes = await documentOf('nodes', 'nodes');
    expect(nodes.nodes.map(({ name }: { name: string }) => name).toSorted()).toEqual(LABELS.map((l) => trio.name(l)));
    const cluster = await documentOf('cluster', 'cluster');
    expect(cluster).toMatchObject({ asked: trio.name('a'), verdict: 'whole', missing: [], unreachable: [] });
    const events = await documentOf('event-stream', 'cluster', 'events', '--all');
    for (const item of events.items) expect(item.node).not.toContain('bloomctl');
    const { out } = await trio.run(['cluster', 'events', '--jsonl']);
    for (const line of out.trim().split('\n')) check(JSON.parse(line), 'event');
    const names = await documentOf('names', 'names');
    expect(names.nodes.map(({ name }: { name: string }) => name)).toEqual([...LABELS]);
    await documentOf('doctor', 'doctor');
    await documentOf('faults', 'faults', '--all');
    await documentOf('load', 'load');
    const ps = await documentOf('ps', 'ps', '--all');
    expect(ps.nodes.map(({ pid }: { pid: number }) => pid)).toEqual(LABELS.map((label) => trio.nodes[label].pid));
  });

  test('describe rooms, placement and components by the schema', async () => {
    await trio.json('a', 'POST /room', { roomId: 'kitchen', maxPeers: 4 });
    await trio.json('b', 'POST /room', { roomId: 'hall' });
    const placed = await documentOf('placement', 'placement', 'explain', 'kitchen');
    expect(placed.nodes.map(({ verdict }: { verdict: string }) => verdict)).toContain('chosen');
    expect((await documentOf('placement', 'placement', 'dry-run')).room).toBeNull();
    const component = await trio.json('a', 'POST /room/kitchen/component', {
      type: 'sip',
      options: { registrarCredentials: { address: '127.0.0.1:9', username: 'u', password: secrets.sipPassword } },
    });
    const { id } = component.data;
    const { components } = await documentOf('components', 'components');
    expect(components.map((one: { id: string }) => one.id)).toContain(id);
    await documentOf('component', 'component', 'kitchen', id);
    const rooms = await documentOf('rooms', 'rooms');
    expect(rooms.rooms.map((room: { id: string }) => room.id).toSorted()).toEqual(['hall', 'kitchen']);
    expect((await documentOf('room', 'room', 'kitchen')).componentList).not.toEqual([]);
  });

  test('describe actors by the schema', async () => {
    const actors = await documentOf('actors', 'actors', '--all', '--limit', '1000');
    const paths = actors.nodes.flatMap(({ actors: lines }: { actors: { path: string }[] }) =>
      lines.map(({ path }) => path),
    );
    expect(paths).toEqual(expect.arrayContaining(['/rooms', '/rooms/kitchen', '/rooms/hall']));
    await documentOf('actor', 'actor', 'rooms/kitchen');
    await documentOf('state', 'state', 'rooms/kitchen');
    await documentOf('mailbox', 'mailbox', 'rooms/kitchen');
    const trace = await documentOf('trace-stream', 'trace', 'rooms/*', '--within', '300ms');
    expect(trace.ended).toHaveLength(1);
    await documentOf('path', 'path', 'nobody-asked');
  });

  test('describe logs by the schema', async () => {
    const logs = await documentOf('logs', 'logs', '--all', '--limit', '20');
    expect(logs.lines.length).toBeGreaterThan(3);
    const { out } = await trio.run(['logs', '--limit', '5', '--jsonl']);
    const lines = out.trim().split('\n');
    expect(lines).toHaveLength(5);
    for (const line of lines) check(JSON.parse(line), 'log');
  });

  test('describe the process by the schema', async () => {
    const top = await documentOf('top-stream', 'top', '--all', '--every', '250ms');
    expect(top.items.map(({ node }: { node: string }) => node).toSorted()).toEqual(LABELS.map((l) => trio.name(l)));
    const { out } = await trio.run(['top', '--jsonl', '--frames', '2', '--every', '250ms']);
    for (const line of out.trim().split('\n')) check(JSON.parse(line), 'top');
    await documentOf('profile', 'profile', 'cpu', 'b', '--for', '300ms', '-o', 'b.cpuprofile');
    const profile = JSON.parse(readFileSync(join(trio.folder, 'b.cpuprofile'), 'utf8'));
    expect(profile.nodes.length).toBeGreaterThan(1);
    expect(existsSync(join(trio.folder, 'b.cpuprofile.part'))).toBe(false);
  });

  test('describe changes by the schema', async () => {
    await documentOf('drain', 'drain', 'c', '--yes', '--deadline', '5m');
    const { code, out } = await trio.run(['rooms', 'move', 'kitchen', 'c', '--yes', '--json']);
    expect(code).toBe(1);
    expect(check(JSON.parse(out), 'room-move').reason).toMatch(/ is draining$|^it is on .* already$/);
    await documentOf('undrain', 'undrain', 'c', '--yes');
    await documentOf('suspend', 'suspend', 'rooms/hall', '--for', '5s', '--yes');
    await documentOf('resume', 'resume', 'rooms/hall', '--yes');
    await documentOf('kill', 'kill', 'rooms/hall', '--yes', '--reason', 'a test');
    await documentOf('link-cut', 'link', 'cut', 'b', 'c', '--for', '500ms', '--yes');
    await documentOf('log-level', 'log-level', 'b', 'debug', '--for', '300ms', '--yes');
    await documentOf('move-fault', 'move-fault', 'b', 'give', 'kill', '--for', '300ms', '--yes');
  });

  test('describe checks, a dump and an error by the schema', async () => {
    const { out, code } = await trio.run(['check', 'cluster', '--nodes', '4', '--json']);
    expect(code).toBe(1);
    expect(check(JSON.parse(out), 'check').ok).toBe(false);
    expect((await documentOf('check', 'check', 'queue', '--max', '1000', '--all')).ok).toBe(true);
    const dumped = await documentOf('dumped', 'dump', 'a', '-o', 'a.dump');
    expect(dumped.answers).toBeGreaterThan(15);
    expect(statSync(join(trio.folder, 'a.dump')).mode & 0o077).toBe(0);
    const unknown = await trio.run(['room', 'nothere', '--json']);
    expect(unknown.code).toBe(65);
    expect(check(JSON.parse(unknown.out), 'error').exit).toBe(65);
  });

  test('describe rooms and people over HTTP by the schema', async () => {
    await documentOf('context', 'context', 'add', 'b', trio.nodes.b.url, '--token-file', 'token');
    await documentOf('contexts', 'context', 'list');
    await documentOf('room-created', 'rooms', 'create', 'study', '--max-peers', '2');
    const { peer } = await documentOf('peer-added', 'peers', 'add', 'study', '--name', 'Ann');
    expect((await documentOf('peer-list', 'peers', 'list', 'study')).peers[0].name).toBe('Ann');
    await documentOf('peer-permissions', 'peers', 'permissions', 'study', peer, '--publish', 'audio');
    await documentOf('invitation', 'invite', 'study');
    await documentOf('viewer', 'viewer', 'study');
    await documentOf('check', 'check', 'server');
    await documentOf('check', 'check', 'room', 'study', '--people', '0');
    const { recordings } = await documentOf('recordings', 'recordings', 'list');
    expect(recordings).toMatchObject([{ room: 'attic', part: PART, state: 'failed', bytes: 5 }]);
    const failed = await trio.run(['check', 'recordings', '--json']);
    expect(check(JSON.parse(failed.out), 'check').failed).toEqual([{ room: 'attic', part: PART }]);
    expect(failed.code).toBe(1);
    const unmixed = await trio.run(['recordings', 'mix', 'attic', PART, '--wait', '--json']);
    expect(check(JSON.parse(unmixed.out), 'recording-mix').mix.state).toBe('failed');
    expect(unmixed.code).toBe(1);
    await documentOf('recordings', 'recordings', 'list');
    await documentOf('recording-removed', 'recordings', 'rm', 'attic', PART, '--yes');
    const { rooms } = await documentOf('room-list', 'rooms', 'list');
    expect(rooms.map(({ id }: { id: string }) => id)).toContain('study');
    await documentOf('peer-kicked', 'peers', 'kick', 'study', peer, '--yes');
    await documentOf('room-deleted', 'rooms', 'delete', 'study', '--yes');
  });

  test('describe calls and loads from outside by the schema', async () => {
    const { url } = trio.nodes.a;
    const options = { env: { BLOOM_TOKEN: apiToken } };
    // What a busy machine delivers decides the verdict, which is judged elsewhere; the exit code has to agree with it.
    for (const args of [['try'], ['loadtest', '--people', '2', '--minutes', '0.05']]) {
      const { out, code } = await trio.run([...args, url, '--json'], options);
      expect(check(JSON.parse(out), args[0] ?? '').ok).toBe(code === 0);
    }
    const nowhere = await trio.run(['try', 'http://127.0.0.1:9', '--json'], options);
    expect(check(JSON.parse(nowhere.out), 'try').steps[0].failure.exit).toBe(69);
  });

  test('are the same for a dump as for a cluster', async () => {
    const offline = async (kind: string, ...args: string[]) => await documentOf(kind, '--dump', 'a.dump', ...args);
    expect((await offline('nodes', 'nodes')).nodes).toHaveLength(3);
    expect((await offline('room', 'room', 'kitchen')).id).toBe('kitchen');
    expect((await offline('state', 'state', 'rooms/kitchen')).kind).toBe('state');
    expect((await offline('actors', 'actors', '--match', 'rooms/kitchen')).nodes[0].matched).toBe(1);
    expect((await offline('logs', 'logs', '--limit', '3')).lines).toHaveLength(3);
    for (const [kind, ...args] of [
      ['cluster', 'cluster'],
      ['ps', 'ps'],
      ['load', 'load'],
      ['rooms', 'rooms'],
      ['components', 'components'],
      ['faults', 'faults'],
    ]) {
      await offline(kind as string, ...args);
    }
    expect((await trio.run(['--dump', 'a.dump', 'kill', 'rooms/kitchen', '--yes'])).code).toBe(64);
  });
});

describeWith(['chromium'], 'with media', () => {
  test('shows what a peer really sends and receives, and captures its packets', async () => {
    const stage = new Stage({ node: () => Promise.resolve({ ...trio.nodes.a, stop: () => Promise.resolve() }) });
    await stage.open();
    try {
      const { ann, bob, room } = await stage.call(['ann', 'bob']);
      const red = await ann.addVideo({ colour: 'red' });
      await bob.plays(red, 'red');
      const seenBy = await documentOf('peer', 'peer', room, bob.id);
      expect(seenBy.outbound).toEqual([expect.objectContaining({ from: ann.id, kind: 'video' })]);
      expect(seenBy.outbound[0].bps).toBeGreaterThan(10_000);
      expect(seenBy.transport).toMatchObject({ ice: 'connected', dtls: 'connected' });
      const sender = await documentOf('peer', 'peer', room, ann.id);
      expect(sender.inbound.length).toBeGreaterThan(0);
      await documentOf('room', 'room', room);
      const muted = await documentOf('peer-muted', 'peers', 'mute', room, ann.id, '--kind', 'video');
      expect(muted.tracks).toMatchObject([{ type: 'video', muted: true }]);
      await documentOf('peer-muted', 'peers', 'mute', room, ann.id, '--off');
      const where = await documentOf('media', 'media', room);
      expect(where.peerList.map(({ id, worker, why }: Record<string, unknown>) => [id, worker, why])).toEqual([
        [ann.id, 1, 'is the only one'],
        [bob.id, 1, 'is the only one'],
      ]);
      await documentOf('pcap', 'pcap', room, bob.id, '--for', '2s', '-o', 'bob.pcap');
      const capture = readFileSync(join(trio.folder, 'bob.pcap'));
      expect([0xa1b2c3d4, 0xd4c3b2a1, 0xa1b23c4d, 0x4d3cb2a1]).toContain(capture.readUInt32LE(0));
      // A still picture takes a few packets a second, each with headers of at least 56 bytes.
      expect(capture.length).toBeGreaterThan(24 + 5 * 56);
    } finally {
      await stage.close();
    }
  });
});

test('covers every kind of document', () => {
  const unseen = [...schemas.keys()].filter(
    (kind) => !seen.has(kind) && !['trace', 'log-stream', 'schemas'].includes(kind),
  );
  expect(unseen).toEqual(missing(['chromium']) === undefined ? [] : ['media', 'peer', 'peer-muted', 'pcap']);
});

test('shows no cookie, key, password or token in any view', async () => {
  const peer = await trio.json('a', 'POST /room/kitchen/peer', { type: 'webrtc', options: {} });
  const { token, peer: added } = peer.data;
  const { peer_websocket_url: address } = peer.data;
  const socket = await PeerConnection.joined(`http://${address.split('/')[0]}`, token, { name: 'ann' });
  await trio.request('a', `GET /room?token=${secrets.sipPassword}`);
  const looks: string[][] = [
    ['actors', '--all', '--limit', '1000'],
    ['room', 'kitchen'],
    ['media', 'kitchen'],
    ['components'],
    ['peer', 'kitchen', added.id, '--sample', '100ms'],
    ['logs', '--all', '--limit', '1000'],
    ['ps', '--all'],
    ['trace', 'rooms/*', '--within', '300ms'],
  ];
  for (const path of ['rooms', 'rooms/kitchen', `rooms/kitchen/peers/${added.id}`]) {
    looks.push(['state', path, '--depth', '10', '--bytes', '65536'], ['mailbox', path], ['actor', path]);
  }
  const told: string[] = [];
  // A few at a time, because each is a separate process.
  for (let at = 0; at < looks.length; at += 4) {
    const answers = await Promise.all(looks.slice(at, at + 4).map((args) => trio.run([...args, '--json'])));
    for (const { code, out, err } of answers) {
      expect(code).toBe(0);
      expect(err).not.toContain('bloomctl:');
      told.push(out, err);
    }
  }
  // This includes the state of every actor.
  for (const label of LABELS) {
    expect((await trio.run(['dump', label, '-o', `${label}.secret.dump`])).code).toBe(0);
    told.push(gunzipSync(readFileSync(join(trio.folder, `${label}.secret.dump`))).toString());
  }
  socket.socket.close();
  const everything = told.join('\n');
  expect(everything).toContain('kitchen');
  for (const [name, secret] of Object.entries({ ...secrets, peerToken: token })) {
    for (const shape of [secret, encodeURIComponent(secret), Buffer.from(secret).toString('base64')]) {
      expect([name, everything.includes(shape)]).toEqual([name, false]);
    }
  }
});
