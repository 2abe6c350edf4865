// Tests the image: its content, and that it starts as any user, with any mounts.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, jest, test } from '@jest/globals';
import { IMAGES, podman } from '../../scripts/deploy/container-image.mjs';
import { until } from '../cluster/until.js';
import { apiToken } from '../harness/bloom-node.js';
import { describeWith } from '../harness/needs.js';
import { repository } from '../harness/processes.js';
import { Container, type ContainerOptions, useContainers } from './containers.js';

useContainers();

const MAX_BYTES = 350 * 1000 * 1000;

describeWith(['containers'], 'the image', () => {
  jest.setTimeout(120_000);
  const running: Container[] = [];
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'bloom-image-'));
  });
  afterEach(async () => {
    for (const container of running.splice(0)) await container.remove();
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const env = { JF_SERVER_API_TOKEN: apiToken };
  async function run(options: ContainerOptions = {}): Promise<Container> {
    const container = await Container.run({ ...options, env: { ...env, ...options.env } });
    running.push(container);
    return container;
  }

  /** Returns API responses of a container whose ports are not published. */
  async function post(container: Container, path: string, body: unknown): Promise<{ status: number; errors?: string }> {
    const headers = { authorization: `Bearer ${apiToken}`, 'content-type': 'application/json' };
    const request = JSON.stringify({ method: 'POST', headers, body: JSON.stringify(body) });
    const script = `const answer = await fetch('http://127.0.0.1:8080${path}', ${request});
      console.log(JSON.stringify({ status: answer.status, ...(await answer.json()) }));`;
    return JSON.parse(await container.exec('node', '--input-type=module', '--eval', script)) as { status: number };
  }

  const ownerOf = (container: Container, path: string): Promise<string> => container.exec('stat', '-c', '%U', path);

  test('is small and contains no compiler, development package or codec', async () => {
    const container = await run();
    const [image] = JSON.parse(podman('image', 'inspect', IMAGES.plain.tag)) as [{ Size: number }];
    expect(image.Size).toBeLessThan(MAX_BYTES);
    const found = await container.exec(
      'sh',
      '-c',
      'which gcc cc make python3 git; ls -d node_modules/typescript node_modules/jest node_modules/node-av node_modules/@seydx/* packages/*/src; true',
    );
    expect(found).toBe('');
    expect(await container.exec('ls', 'LICENSE', 'NOTICE')).toBe('LICENSE\nNOTICE');
  });

  test('names source lines in stack traces when source maps are enabled', async () => {
    const env = { JF_PORT: '1', JF_METRICS_PORT: '1', NODE_OPTIONS: '--enable-source-maps' };
    const container = await run({ env, options: ['--cap-drop', 'all'] });
    await container.ended();
    expect(container.log()).toMatch(/packages\/\w[\w-]*\/src\/[\w/-]+\.ts:\d+/);
  });

  test('states its name, version, source and license', () => {
    const { version, repository: source } = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8'));
    type Inspected = [{ Config: { Labels: Record<string, string>; StopSignal: string } }];
    for (const [name, licenses] of [
      ['plain', 'Apache-2.0'],
      ['gpl', 'Apache-2.0 AND GPL-3.0-or-later'],
    ] as const) {
      const [{ Config }] = JSON.parse(podman('image', 'inspect', IMAGES[name].tag)) as Inspected;
      expect(Config.StopSignal).toBe('SIGTERM');
      expect(Config.Labels).toMatchObject({
        'org.opencontainers.image.title': 'Bloom',
        'org.opencontainers.image.version': version,
        'org.opencontainers.image.source': source.url.replace(/^git\+|\.git$/g, ''),
        'org.opencontainers.image.licenses': licenses,
      });
    }
  });

  test('refuses HLS components with the name of the missing package, unlike the image with the codecs', async () => {
    for (const [image, status, errors] of [
      ['plain', 400, 'Components of type hls need node-av, which is not installed'],
      ['gpl', 201, undefined],
    ] as const) {
      const container = await run({ image });
      await container.healthy();
      await post(container, '/room', { roomId: 'stage', videoCodec: 'h264' });
      const answer = await post(container, '/room/stage/component', { type: 'hls', options: {} });
      expect(answer.status).toEqual(status);
      expect(answer.errors).toEqual(errors);
      if (status !== 201) continue;
      // A camera's process has loaded the codecs once it has tried its source.
      await post(container, '/room/stage/component', { type: 'rtsp', options: { sourceUri: 'rtsp://127.0.0.1:1/' } });
      await until('the camera is tried', () => /rtsp\.lost.*Connection refused/.test(container.log()));
      expect(container.log()).not.toContain('component.crashed');
    }
  });

  test('runs as an unprivileged user that owns its files, and ends cleanly on SIGTERM', async () => {
    const container = await run();
    await container.healthy();
    expect(await container.exec('stat', '-c', '%U', '/proc/1')).toBe('node');
    await container.terminate();
    expect(await container.ended()).toBe(0);
  });

  test('owns the configured resources and their content, leaves links and read-only mounts alone, and logs that', async () => {
    const resources = join(folder, 'resources');
    for (const path of ['recordings/old', 'sources']) mkdirSync(join(resources, path), { recursive: true });
    writeFileSync(join(resources, 'recordings/old/part'), 'x');
    writeFileSync(join(resources, 'sources/film'), 'x');
    const container = await run({
      env: { JF_RESOURCES_BASE_PATH: '/data' },
      options: ['--volume', `${resources}:/data`, '--volume', `${resources}/sources:/data/sources:ro`],
    });
    await container.healthy();
    for (const path of ['/data', '/data/recordings', '/data/recordings/old/part'])
      expect([path, await ownerOf(container, path)]).toEqual([path, 'node']);
    expect(await ownerOf(container, '/data/sources/film')).toBe('root');
    expect(container.log()).toContain('/data/sources keeps its owner, because it cannot be changed');
  });

  test.each([
    ['any user', ['--user', '12345:12345']],
    ['a read-only root file system', ['--read-only', '--tmpfs', '/app/bloom_resources:rw,mode=1777']],
    ['a read-only root file system and nothing writable', ['--read-only']],
    ['root without capabilities', ['--cap-drop', 'all']],
  ])('becomes healthy with %s', async (_, options) => {
    const container = await run({ options });
    await container.healthy();
  });
});
