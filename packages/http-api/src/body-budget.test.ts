import { EventEmitter, once } from 'node:events';
import { type IncomingMessage, request as httpRequest, type ServerResponse } from 'node:http';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { BodyBudget, MAX_BODIES_BYTES } from './body-budget.js';
import { MAX_BODY_BYTES } from './routes.js';
import { TestApi } from './testing/api.js';

const CHUNK = Buffer.alloc(1024 * 1024);

test('counts a body of unknown length by what has arrived, and forgets it with its response', async () => {
  const budget = new BodyBudget();
  const start = (): { request: PassThrough; response: EventEmitter } => {
    const [request, response] = [Object.assign(new PassThrough(), { headers: {} }), new EventEmitter()];
    budget.admit(request as unknown as IncomingMessage, response as ServerResponse, MAX_BODY_BYTES);
    return { request, response };
  };
  const send = async ({ request }: { request: PassThrough }): Promise<boolean> => {
    request.write(CHUNK);
    await new Promise(setImmediate);
    return !request.destroyed;
  };
  const perBody = 7;
  const bodies = Array.from({ length: MAX_BODIES_BYTES / CHUNK.length / perBody }, start);
  for (const body of bodies) for (let i = 0; i < perBody; i += 1) expect(await send(body)).toBe(true);
  const late = start();
  expect(await send(late)).toBe(true);
  expect(await send(late)).toBe(false);

  for (const { response } of bodies.slice(1)) response.emit('close');
  const next = start();
  expect(await send(next)).toBe(true);
});

describe('the API', () => {
  let api: TestApi;

  beforeEach(async () => {
    api = await TestApi.open();
  });

  afterEach(() => api.close());

  test("leaves room for a backend's large body while strangers hold compressed bodies open", async () => {
    const held = Array.from({ length: 8 }, () =>
      httpRequest({
        host: '127.0.0.1',
        port: api.port,
        method: 'POST',
        path: '/invitation',
        headers: {
          'content-type': 'application/json',
          'content-encoding': 'gzip',
          'content-length': '100',
          expect: '100-continue',
        },
      }),
    );
    for (const request of held) {
      // The end of the test cuts the strangers off.
      request.on('error', () => undefined);
      const admitted = once(request, 'continue');
      request.flushHeaders();
      await admitted;
    }

    const body = JSON.stringify({ colour: 'x'.repeat(MAX_BODY_BYTES / 2) });
    const answer = await api.raw('POST', '/room', { body, headers: { 'content-type': 'application/json' } });
    expect(answer.status).toBe(201);
  });
});
