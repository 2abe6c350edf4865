import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { ActorError } from '@bloom/actors';
import { MediaFileError } from './errors.js';
import { ClusterRawRecordings } from './cluster-raw-recordings.js';
import { FILES_ACTOR, type FilesProtocol, HEAD_BYTES } from './file-messages.js';
import { type FilesPort, RemoteFiles } from './remote-files.js';
import { bytesOf, TestNode } from './testing/test-node.js';

let nodes: Map<string, TestNode>;
let lost: string[];
let frozen: Set<string>;
let old: Set<string>;
let recordings: ClusterRawRecordings;
beforeEach(async () => {
  lost = [];
  frozen = new Set();
  old = new Set();
  nodes = new Map(['a', 'b', 'c'].map((name) => [name, new TestNode(name)]));
  for (const node of nodes.values()) await node.open();
  const port: FilesPort = {
    members: () => ['b', 'c'],
    releaseOf: () => null,
    call: (node, message, timeoutMs) => {
      if (frozen.has(node)) return Promise.reject(new Error('no answer'));
      if (old.has(node)) return Promise.reject(new ActorError('UNKNOWN_MESSAGE', 'it knows no such message'));
      return nodes.get(node)!.system.call<FilesProtocol, typeof message.type>(FILES_ACTOR, message, timeoutMs) as never;
    },
    cast: (node, message) => void nodes.get(node)!.system.cast<FilesProtocol>(FILES_ACTOR, message),
  };
  recordings = new ClusterRawRecordings({
    local: nodes.get('a')!.raw,
    remote: new RemoteFiles(port),
    lostNodes: () => lost,
  });
});
afterEach(async () => {
  for (const node of nodes.values()) await node.close();
});

const { signal } = new AbortController();
const file = { roomId: 'kitchen', part: 'p1', fileName: 'a.ogg' };
const list = async (limit: number) => {
  const { recordings: found, isWhole, unreachable } = await recordings.list('cluster', { limit });
  return [found.map(({ roomId, part, state }) => `${roomId}/${part} ${state}`), isWhole, unreachable];
};

describe('the recordings of tracks of a cluster', () => {
  test('are listed newest first, and once if nodes share a directory', async () => {
    nodes.get('a')!.raw.add('hall', 'p2');
    nodes.get('a')!.raw.add('kitchen', 'p3');
    nodes.get('b')!.raw.add('kitchen', 'p3', { state: 'recording', isHere: true });
    nodes.get('c')!.raw.add('attic', 'p2');
    expect(await list(10)).toEqual([['kitchen/p3 recording', 'attic/p2 finished', 'hall/p2 finished'], true, []]);
    expect(await list(2)).toEqual([['kitchen/p3 recording', 'attic/p2 finished'], false, []]);
    const own = await recordings.list('local', { limit: 10 });
    expect(own.recordings.map(({ part }) => part)).toEqual(['p2', 'p3']);
  });

  test('are listed without those of silent and lost nodes, which are named', async () => {
    frozen.add('b');
    lost = ['z'];
    nodes.get('c')!.raw.add('attic', 'p2');
    expect(await list(10)).toEqual([['attic/p2 finished'], true, ['b', 'z']]);
  });

  test('are read from the node that has them, in pieces', async () => {
    const content = bytesOf(3 * HEAD_BYTES);
    nodes.get('c')!.raw.content.set('kitchen/p1/a.ogg', content);
    const opened = await recordings.open(file, signal);
    expect(opened.size).toBe(content.length);
    expect(await opened.read({ start: 2 * HEAD_BYTES - 5, end: 2 * HEAD_BYTES + 4 })).toEqual(
      content.subarray(2 * HEAD_BYTES - 5, 2 * HEAD_BYTES + 5),
    );
    await opened.close();
  });

  test('are not found only where every node has answered', async () => {
    await expect(recordings.open(file, signal)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(recordings.remove(file)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    frozen.add('b');
    const perhaps = { code: 'OWNER_UNREACHABLE', message: expect.stringContaining('may be on b') };
    await expect(recordings.open(file, signal)).rejects.toMatchObject(perhaps);
    await expect(recordings.remove(file)).rejects.toMatchObject(perhaps);
  });

  test('are mixed on the one node that has them, even if several share a directory', async () => {
    for (const name of ['b', 'c']) nodes.get(name)!.raw.add('kitchen', 'p1');
    const mix = { state: 'queued', layout: 'speaker', width: 640, height: 720 };
    expect(await recordings.mix(file, { layout: 'speaker', width: 640 })).toMatchObject(mix);
    expect(nodes.get('b')!.raw.listed[0]).toMatchObject({ mix });
    expect(nodes.get('c')!.raw.listed[0]?.mix).toBeUndefined();
    expect((await recordings.list('cluster', { limit: 1 })).recordings[0]).toMatchObject({ mix });
    await expect(recordings.mix(file, {})).rejects.toMatchObject({ code: 'IN_PROGRESS' });
    await recordings.removeMix(file);
    await expect(recordings.removeMix(file)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  test('are mixed with credentials that arrive whole', async () => {
    const { raw } = nodes.get('c')!;
    raw.add('kitchen', 'p1');
    let asked: unknown;
    raw.mix = async (_place, order) => {
      asked = order;
      throw new MediaFileError('INVALID_OPTIONS', 'no');
    };
    const keys = { accessKeyId: 'a', secretAccessKey: 'b', region: 'c', bucket: 'd' };
    const credentials = { ...keys, endpoint: 'https://store.example' };
    await expect(recordings.mix(file, { credentials })).rejects.toMatchObject({ code: 'INVALID_OPTIONS' });
    expect(asked).toMatchObject({ credentials });
  });

  test('are mixed with the parts that continue them on other nodes, once those are complete', async () => {
    nodes.get('a')!.raw.add('kitchen', 'p1');
    nodes.get('b')!.raw.add('kitchen', 'p2', { continues: 'p1' });
    nodes.get('c')!.raw.add('kitchen', 'p3', { continues: 'p2', state: 'recording' });
    nodes.get('c')!.raw.add('hall', 'p4', { continues: 'p1' });
    await expect(recordings.mix(file, {})).rejects.toMatchObject({
      code: 'IN_PROGRESS',
      message: 'Recording kitchen/p1 goes on in p3, which is still being recorded',
    });
    nodes.get('c')!.raw.listed[0]!.state = 'uploaded';
    const asked: unknown[] = [];
    nodes.get('b')!.raw.mix = async (place, order) => {
      asked.push([place.part, order.later]);
      throw new MediaFileError('INVALID_OPTIONS', 'no');
    };
    nodes.get('a')!.raw.listed.pop();
    nodes.get('b')!.raw.add('kitchen', 'p1');
    await expect(recordings.mix(file, { layout: 'grid' })).rejects.toMatchObject({ code: 'INVALID_OPTIONS' });
    expect(asked.at(-1)).toEqual(['p1', ['p2', 'p3']]);
    // Damaged reports may name each other.
    nodes.get('b')!.raw.add('kitchen', 'p1', { continues: 'p3' });
    await expect(recordings.mix(file, {})).rejects.toMatchObject({ code: 'INVALID_OPTIONS' });
    expect(asked.at(-1)).toEqual(['p1', ['p2', 'p3']]);
  });

  test('are perhaps on a node that does not answer, or does not know of mixes', async () => {
    await expect(recordings.mix(file, {})).rejects.toMatchObject({ code: 'NOT_FOUND' });
    frozen.add('b');
    const perhaps = { code: 'OWNER_UNREACHABLE', message: expect.stringContaining('may be on b') };
    await expect(recordings.mix(file, {})).rejects.toMatchObject(perhaps);
    await expect(recordings.removeMix(file)).rejects.toMatchObject(perhaps);
    nodes.get('c')!.raw.add('kitchen', 'p1');
    frozen = new Set();
    expect(await recordings.mix(file, {})).toMatchObject({ state: 'queued' });
    old.add('b');
    await recordings.removeMix(file);
    const unmixed = { ...file, part: 'p2' };
    await expect(recordings.removeMix(unmixed)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(recordings.mix(unmixed, {})).rejects.toMatchObject(perhaps);
    old.clear();
    lost = ['z'];
    await expect(recordings.mix(unmixed, {})).rejects.toMatchObject({
      message: expect.stringContaining('may be on z'),
    });
  });

  test('are not mixed while a member that may have a later part does not answer', async () => {
    nodes.get('a')!.raw.add('kitchen', 'p1');
    nodes.get('b')!.raw.add('kitchen', 'p2', { continues: 'p1' });
    const asked: unknown[] = [];
    nodes.get('a')!.raw.mix = async (_place, order) => {
      asked.push(order.later);
      throw new MediaFileError('INVALID_OPTIONS', 'no');
    };
    frozen.add('b');
    await expect(recordings.mix(file, {})).rejects.toMatchObject({
      message: 'A part of recording kitchen/p1 may be on b, which is currently unreachable',
    });
    frozen.clear();
    expect(asked).toEqual([]);
    await expect(recordings.mix(file, {})).rejects.toMatchObject({ code: 'INVALID_OPTIONS' });
    expect(asked).toEqual([['p2']]);
  });

  test('are mixed although a node has been lost', async () => {
    nodes.get('a')!.raw.add('kitchen', 'p1');
    lost = ['z'];
    expect(await recordings.mix(file, {})).toMatchObject({ state: 'queued' });
  });

  test('are mixed with the parts that continue them in a room of more recordings than one list has', async () => {
    const { raw } = nodes.get('a')!;
    for (let i = 3_500; i > 2_000; i--) raw.add('kitchen', `p${i}`);
    raw.add('kitchen', 'p2', { continues: 'p1' });
    raw.add('kitchen', 'p1');
    let later: unknown;
    raw.mix = async (_place, order) => {
      later = order.later;
      throw new MediaFileError('INVALID_OPTIONS', 'no');
    };
    await expect(recordings.mix(file, {})).rejects.toMatchObject({ code: 'INVALID_OPTIONS' });
    expect(later).toEqual(['p2']);
  });

  test('are not mixed in a room whose list never ends', async () => {
    const { raw } = nodes.get('a')!;
    raw.add('kitchen', 'p1');
    raw.list = async () => ({ recordings: raw.listed, isWhole: false });
    await expect(recordings.mix(file, {})).rejects.toMatchObject({ code: 'TOO_BUSY' });
  });

  test('are removed from every node', async () => {
    for (const node of nodes.values()) node.raw.add('kitchen', 'p1');
    await recordings.remove(file);
    expect(await list(10)).toEqual([[], true, []]);
  });
});
