import type { ServerResponse } from 'node:http';
import { afterEach, describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { Failure } from '../exit.js';
import { tokenOf } from '../outside/token.js';
import { serverUrl } from '../outside/server.js';
import { closeServers, serveHttp } from '../testing/http.js';
import * as answers from './answers.js';
import { Connection } from './connection.js';

afterEach(closeServers);

const SECRET = 'token-of-the-operator-77';

async function connect(reply: (response: ServerResponse) => void, options: { timeoutMs?: number } = {}) {
  const url = serverUrl(await serveHttp((_, response) => reply(response)));

  return new Connection({ url, token: tokenOf(SECRET, 'here'), timeoutMs: 2_000, maxAnswerBytes: 100_000, ...options });
}

const listOf = (connection: Connection) => connection.ask(answers.rooms, (client) => client.snapshot());

const says = (status: number, body: string) => (response: ServerResponse) => {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(body);
};

function endless(response: ServerResponse): void {
  const write = (): void => {
    while (!response.destroyed && response.write('[1,'.repeat(20_000)));
  };
  response.on('drain', write);
  write();
}

function slow(response: ServerResponse): void {
  const timer = setInterval(() => response.write(' '), 10);
  response.on('close', () => clearInterval(timer));
}

describe('a server that is none of ours', () => {
  test('is cut off when its answer has no end', async () => {
    await expect(listOf(await connect(endless))).rejects.toMatchObject({
      exit: 70,
      message: 'the answer of the server is longer than 100 kB',
    });
  });

  test('is given up when its answer takes too long', async () => {
    await expect(listOf(await connect(slow, { timeoutMs: 200 }))).rejects.toMatchObject({ exit: 75 });
  });

  test('gets no token for a host to which it sends people on', async () => {
    const reply = (response: ServerResponse) => response.writeHead(302, { location: 'http://127.0.0.1:9/' }).end();
    await expect(listOf(await connect(reply))).rejects.toMatchObject({ exit: 69 });
  });

  test.each([
    '',
    '<html>',
    'null',
    '7',
    '{}',
    '{"data":null}',
    '{"data":{}}',
    '{"data":[null]}',
    '{"data":[{"id":5}]}',
    '{"data":[{"id":"a","config":{},"peers":[{"id":"p"}],"components":[]}]}',
    `{"data":[{"id":"a","config":{},"components":[],"peers":[{"id":"p","status":"connected","tracks":[],"metadata":${'['.repeat(200)}${']'.repeat(200)}}]}]}`,
  ])('is named as such when it answers %p', async (body) => {
    await expect(listOf(await connect(says(200, body)))).rejects.toMatchObject({
      exit: 69,
      message: expect.stringContaining('does not answer like this API'),
    });
  });

  test('is named as such when it answers a creation with something else', async () => {
    const connection = await connect(says(200, '{"data":5}'));
    await expect(connection.ask(answers.createdRoom, (client) => client.createRoom())).rejects.toMatchObject({
      exit: 69,
    });
    await expect(connection.ask(answers.addedPeer, (client) => client.addPeer('a'))).rejects.toMatchObject({
      exit: 69,
    });
  });

  test('writes no control characters to the terminal with its sentences', async () => {
    const failure = await listOf(await connect(says(400, '{"errors":"\\u001b[2J\\u009b1m bad"}'))).catch(
      (error: Failure) => error,
    );
    expect(failure).toMatchObject({ exit: 64, message: '\\u001b[2J\\u009b1m bad' });
  });

  test('fails on garbage only with a sentence', async () => {
    let body = '';
    const connection = await connect((response) => says(200, body)(response));
    const value = fc.oneof(
      fc.json(),
      fc.json().map((text) => `{"data":[${text}]}`),
      fc.string(),
    );
    await fc.assert(
      fc.asyncProperty(value, async (text) => {
        body = text;
        await listOf(connection).catch((error: unknown) => expect(error).toBeInstanceOf(Failure));
      }),
      { numRuns: fuzzRuns(200) },
    );
  });
});

describe('a refusal', () => {
  test.each([
    [400, 64],
    [401, 77],
    [403, 77],
    [404, 65],
    [429, 75],
    [500, 70],
    [503, 75],
  ])('of status %i ends with %i and the sentence of the server', async (status, exit) => {
    const connection = await connect(says(status, '{"errors":"Room none does not exist"}'));
    await expect(connection.tell((client) => client.deleteRoom('none'))).rejects.toMatchObject({
      exit,
      message: expect.stringContaining('Room none does not exist'),
    });
  });

  test('of the token says where it came from, and never shows it', async () => {
    const failure = await listOf(await connect(says(401, '{"errors":"invalid token"}'))).catch(
      (error: unknown) => error,
    );
    expect(failure).toMatchObject({ advice: expect.stringContaining('it came from here') });
    expect(JSON.stringify(failure) + String(failure)).not.toContain(SECRET);
  });

  test('of the token by a server that nobody named says how to name one', async () => {
    const url = serverUrl(await serveHttp((_, response) => says(401, '{"errors":"invalid token"}')(response)));
    const connection = new Connection({ url, token: tokenOf(SECRET, 'here'), timeoutMs: 2_000, isGuess: true });
    await expect(listOf(connection)).rejects.toMatchObject({
      exit: 77,
      advice: expect.stringMatching(/BLOOM_TOKEN goes to a named server only.*--url/),
    });
  });

  test('without a sentence of its own means another server', async () => {
    await expect(listOf(await connect(says(404, '<html>')))).rejects.toMatchObject({ exit: 69 });
  });
});

test('refuses an id that would address something else', async () => {
  const connection = await connect(says(204, ''));
  await expect(connection.tell((client) => client.deletePeer('hall', '..'))).rejects.toMatchObject({ exit: 64 });
});

test('keeps what is shown of an answer, and nothing of a later release', async () => {
  const peer = { id: 'p', type: 'webrtc', status: 'connected', tracks: [], metadata: { a: 1 }, shoeSize: 43 };
  const room = { id: 'a', config: { maxPeers: null, more: 1 }, components: [], peers: [peer], more: 1 };
  const connection = await connect(says(200, JSON.stringify({ data: [room], unreachable: ['b@c'] })));
  expect(await listOf(connection)).toEqual({
    rooms: [
      {
        id: 'a',
        config: { maxPeers: null },
        components: [],
        peers: [{ id: 'p', status: 'connected', tracks: [], metadata: { a: 1 } }],
      },
    ],
    unreachable: ['b@c'],
  });
});
