import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, test } from '@jest/globals';
import { BODY_EXAMPLES } from './body-examples.js';
import { createOpenApiDocument } from './openapi.js';
import { openApiFile } from './openapi-file.js';
import { ROUTES } from './routes.js';
import { TestApi, TOKEN } from './testing/api.js';
import { Conformance } from './testing/conforms.js';

const root = new URL('../../../', import.meta.url);

function securedOperations(publicMediaFiles: boolean): string[] {
  const document = createOpenApiDocument({ version: '1.0.0', publicMediaFiles });

  return Object.values(document.paths ?? {}).flatMap((methods) =>
    Object.values(methods).flatMap((operation: { operationId?: string; security?: unknown[] }) =>
      operation.security?.length === 0 ? [] : [operation.operationId ?? ''],
    ),
  );
}

test('matches docs/reference/openapi.json to the schemas (npm run openapi writes it)', () => {
  const { version } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as { version: string };

  expect(readFileSync(new URL('docs/reference/openapi.json', root), 'utf8')).toBe(openApiFile(version));
});

test('mentions every route in docs/reference/http-api.md', () => {
  const page = readFileSync(new URL('docs/reference/http-api.md', root), 'utf8');
  const missing = ROUTES.map(({ method, path }) => `\`${method.toUpperCase()} ${path.replaceAll(/:(\w+)/g, '{$1}')}`);

  expect(missing.filter((call) => !page.includes(call))).toEqual([]);
});

describe('OpenAPI document', () => {
  test('describes every route once', () => {
    const document = createOpenApiDocument({ version: '1.0.0', publicMediaFiles: false });
    const operations = Object.values(document.paths ?? {}).flatMap((methods) => Object.values(methods));

    expect(document.openapi).toBe('3.1.0');
    expect(operations).toHaveLength(ROUTES.length);
  });

  test('marks exactly the operations that demand the token', () => {
    const all = ROUTES.filter(({ auth }) => auth !== 'none').map((route) => route.id);
    const files = ['get_recording_content', 'get_hls_content'];

    expect(securedOperations(false).toSorted()).toEqual(all.toSorted());
    expect(securedOperations(true).toSorted()).toEqual(all.filter((id) => !files.includes(id)).toSorted());
  });

  test('has an example for every JSON body that the API accepts', () => {
    const bodies = ROUTES.flatMap(({ id, body }) => (body === undefined ? [] : [{ id, body }]));
    expect(Object.keys(BODY_EXAMPLES).toSorted()).toEqual(bodies.map(({ id }) => id).toSorted());
    for (const { id, body } of bodies) {
      for (const [name, example] of Object.entries(BODY_EXAMPLES[id] ?? {})) {
        expect([id, name, body.safeParse(example).error]).toEqual([id, name, undefined]);
      }
    }
  });

  test('names the properties of components by their kind', () => {
    const { components } = createOpenApiDocument({ version: '1.0.0', publicMediaFiles: false });
    const names = Object.keys(components?.schemas ?? {});

    for (const kind of ['HLS', 'RTSP', 'File', 'SIP', 'Recording'])
      expect(names).toContain(`ComponentProperties${kind}`);
  });
});

describe('a described API', () => {
  let api: TestApi;

  afterEach(() => api.close());

  test('serves the document and its page without a token', async () => {
    api = await TestApi.open({
      settings: { apiToken: TOKEN, publicMediaFiles: false, describe: true, version: '9.8.7' },
    });

    const document = await api.raw('GET', '/openapi.json', { headers: { authorization: [] } });
    expect(document.status).toBe(200);
    expect(document.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(JSON.parse(document.body)).toEqual(
      JSON.parse(JSON.stringify(createOpenApiDocument({ version: '9.8.7', publicMediaFiles: false }))),
    );

    const page = await api.raw('GET', '/docs', { headers: { authorization: [] } });
    expect(page.status).toBe(200);
    expect(page.headers['content-type']).toBe('text/html; charset=utf-8');
    expect(page.body).toContain('<a href="book/">');
    // The node serves the book as it serves its page.
    const files = [...page.body.matchAll(/(?:src|href)="(?!data:|book\/)([^"]+)"/g)].map(([, file]) => `/${file}`);
    const own = [
      '/docs/swagger-ui.css',
      '/docs/page.css',
      '/openapi.json',
      '/docs/swagger-ui-bundle.js',
      '/docs/start.js',
    ];
    expect(files).toEqual(own);
    for (const file of files) {
      const { status, headers } = await api.raw('GET', file, { headers: { authorization: [] } });
      expect([file, status]).toEqual([file, 200]);
      if (file !== '/openapi.json') expect(headers['content-security-policy']).toContain("default-src 'none'");
    }
  });

  test('does not serve the document and its page unless enabled', async () => {
    api = await TestApi.open();

    for (const path of ['/openapi.json', '/docs', '/docs/start.js']) {
      expect((await api.raw('GET', path)).status).toBe(404);
    }
  });

  test('offers unknown routes to the fallback before it answers 404', async () => {
    api = await TestApi.open({
      fallback: (request, response, next) => {
        if (request.url === '/') response.end('the page');
        else next();
      },
    });

    expect((await api.raw('GET', '/')).body).toBe('the page');
    expect((await api.raw('GET', '/other')).status).toBe(404);
  });
});

describe('the check of answers', () => {
  const conformance = new Conformance(createOpenApiDocument({ version: '1.0.0', publicMediaFiles: false }));
  const json = { contentType: 'application/json; charset=utf-8' };
  const room = {
    id: 'r',
    config: {
      roomId: 'r',
      maxPeers: 1,
      videoCodec: null,
      webhookUrl: null,
      peerlessPurgeTimeout: null,
      peerDisconnectedTimeout: null,
    },
    components: [],
    peers: [],
  };
  const check = (body: unknown, { status = 200, path = '/room/r' } = {}) =>
    conformance.check({ method: 'GET', path, status, body, ...json });

  test('accepts documented answers', () => {
    expect(check({ data: room })).toEqual([]);
    expect(check({ errors: 'x' }, { status: 404 })).toEqual([]);
  });

  test.each<[string, unknown, { status?: number; path?: string }]>([
    ['a missing key', { data: { ...room, id: undefined, config: {} } }, {}],
    ['an extra key', { data: { ...room, more: 1 } }, {}],
    ['a wrong type', { data: { ...room, id: 7 } }, {}],
    ['a wrong nested type', { data: { ...room, config: { ...room.config, maxPeers: '1' } } }, {}],
    ['a value outside the enumeration', { data: { ...room, config: { ...room.config, videoCodec: 'av1' } } }, {}],
    ['a value below the minimum', { data: { ...room, config: { ...room.config, maxPeers: -1 } } }, {}],
    ['a broken item', { data: { ...room, peers: [{}] } }, {}],
    ['a status that is not documented', { data: room }, { status: 418 }],
    ['a path that is not documented', { data: room }, { path: '/none' }],
  ])('refuses %s', (_what, body, where) => {
    expect(check(body, where)).not.toEqual([]);
  });
});
