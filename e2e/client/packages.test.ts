// Tests the published packages through their tarballs.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { repository } from '../harness/repository.js';

/** `limit`: maximum size of a minified and gzipped bundle in bytes, 1.5 times that of version 0.1. */
const PACKAGES = [
  { name: 'client', bundles: ['index.js'], limit: 12_000 },
  { name: 'react', bundles: ['index.js'], limit: 3_000 },
  { name: 'server-sdk', bundles: ['index.js', 'index.cjs', 'browser.js'], limit: 8_000 },
] as const;
const READ_BY_PEOPLE = ['LICENSE', 'README.md', 'package.json'];

let folder: string;
const packed = new Map<string, { tarball: string; files: string[] }>();
const installed = (name: string, file = ''): string => join(folder, 'node_modules', '@bloom', name, file);

/** Runs a program of this workspace in the folder of a user who installed the packages. */
function run(program: string, args: string[]): string {
  return execFileSync(program, args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'bloom-packages-'));
  for (const { name } of PACKAGES) {
    const pack = ['pack', '--json', '--silent', '--pack-destination', folder];
    const output = execFileSync('npm', pack, { cwd: join(repository, 'packages', name), encoding: 'utf8' });
    const [{ filename, files }] = JSON.parse(output.slice(output.indexOf('[')));
    packed.set(name, { tarball: join(folder, filename), files: files.map(({ path }: { path: string }) => path) });
    mkdirSync(installed(name), { recursive: true });
    run('tar', ['-xzf', filename, '--strip-components=1', '-C', installed(name)]);
  }
  mkdirSync(join(folder, 'node_modules', '@types'));
  for (const name of ['ws', '@bufbuild', 'react', '@types/node', '@types/ws', '@types/react', 'csstype']) {
    symlinkSync(join(repository, 'node_modules', name), join(folder, 'node_modules', name));
  }
}, 180_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.each(PACKAGES)('@bloom/$name', ({ name, bundles, limit }) => {
  const manifest = () => JSON.parse(readFileSync(installed(name, 'package.json'), 'utf8'));

  test('contains its bundles, their types, and its documents', () => {
    const { files } = packed.get(name)!;
    const others = files.filter((file) => !/^dist\/types(-cjs)?\/[\w-]+\.d\.c?ts$/.test(file));
    expect(others.toSorted()).toEqual([...READ_BY_PEOPLE, ...bundles.map((file) => `dist/${file}`)].toSorted());
    for (const file of files) {
      const text = readFileSync(installed(name, file), 'utf8');
      expect([file, /sourceMappingURL|from ['"]@bloom\/(protocol|time)['"]/.exec(text)?.[0]]).toEqual([
        file,
        undefined,
      ]);
    }
  });

  test('can be published: public, with provenance, and dependent on published packages only', () => {
    const { publishConfig, license, version, dependencies = {} } = manifest();
    expect({ publishConfig, license }).toEqual({
      publishConfig: { access: 'public', provenance: true },
      license: 'Apache-2.0',
    });
    for (const [dependency, range] of Object.entries(dependencies).filter(([one]) => one.startsWith('@bloom/'))) {
      expect(PACKAGES.map((one) => `@bloom/${one.name}`)).toContain(dependency);
      expect(range).toBe(version);
    }
  });

  test(`stays small: below ${limit / 1000} kB, minified and gzipped`, () => {
    const esbuild = join(repository, 'node_modules', 'esbuild', 'bin', 'esbuild');
    for (const bundle of bundles) {
      const minified = run(esbuild, ['--minify', '--loader:.cjs=js', installed(name, `dist/${bundle}`)]);
      expect(gzipSync(minified).length).toBeLessThan(limit);
    }
  });

  test('has types that every module resolution finds', async () => {
    const tarball = new Uint8Array(readFileSync(packed.get(name)!.tarball));
    const result = await checkPackage(createPackageFromTarballData(tarball));
    // Browser packages are ES modules only, which Node's `require` can load since 20.19.
    const accepted = name === 'server-sdk' ? [] : ['CJSResolvesToESM'];
    expect('problems' in result && result.problems.filter(({ kind }) => !accepted.includes(kind))).toEqual([]);
  });
});

test('the server SDK runs as an ES module and as CommonJS', () => {
  const use = `const url = 'http://h'; new BloomClient({ url, token: 't' }); console.log(typeof parseWebhook, BloomApiError.name);`;
  const names = '{ BloomApiError, BloomClient, parseWebhook }';
  writeFileSync(join(folder, 'use.mjs'), `import ${names} from '@bloom/server-sdk'; ${use}`);
  writeFileSync(join(folder, 'use.cjs'), `const ${names} = require('@bloom/server-sdk'); ${use}`);
  for (const file of ['use.mjs', 'use.cjs']) expect(run(process.execPath, [file])).toBe('function BloomApiError\n');
});

test.each([
  ['a page', ['--platform=browser']],
  ['an edge runtime', ['--platform=neutral', '--conditions=edge-light,worker']],
])('the server SDK can be bundled for %s without anything from Node', (_runtime, options) => {
  writeFileSync(
    join(folder, 'bundled.mjs'),
    `import { BloomClient } from '@bloom/server-sdk'; console.log(BloomClient);`,
  );
  const bundle = run(join(repository, 'node_modules', 'esbuild', 'bin', 'esbuild'), [
    '--bundle',
    ...options,
    'bundled.mjs',
  ]);
  expect(/\bBuffer\b|does not work in the browser/.exec(bundle)).toBeNull();
});

test.each([
  ['use.mts', 'node16', 'node16'],
  ['use.cts', 'node16', 'node16'],
  ['use.ts', 'esnext', 'bundler'],
])('the types of the server SDK compile in %s with %s, %s', (file, module, resolution) => {
  writeFileSync(
    join(folder, file),
    `import { BloomClient, parseWebhook, type Component } from '@bloom/server-sdk';
    export const playable = (component: Component): boolean => component.type === 'hls' && component.properties.playable;
    export const source = (component: Component): string =>
      component.type === 'rtsp' ? component.properties.sourceUri : component.id;
    export const hls = new BloomClient({ url: 'http://h', token: 't' }).addComponent('r', 'hls', {});
    export const shown = async (): Promise<boolean> => (await hls).properties.playable;
    export const room: string | undefined = parseWebhook(Buffer.alloc(0))?.roomId;`,
  );
  compile(file, { module, resolution, types: 'node' });
});

test('the types of the browser packages compile', () => {
  writeFileSync(
    join(folder, 'page.ts'),
    `import { RoomClient, type RemoteTrack } from '@bloom/client';
    import { useTracks, VideoTile } from '@bloom/react';
    export const tracks = (client: RoomClient): readonly RemoteTrack[] => client.peers.flatMap((peer) => peer.tracks);
    export const shown = (): unknown => useTracks('video').map((track) => VideoTile({ track }));`,
  );
  compile('page.ts', { module: 'esnext', resolution: 'bundler', types: 'react' });
});

function compile(file: string, options: { module: string; resolution: string; types: string }): void {
  const compiler = join(repository, 'node_modules', 'typescript', 'bin', 'tsc');
  const { module, resolution, types } = options;
  const strict = ['--strict', '--noEmit', '--target', 'es2022', '--types', types, '--skipLibCheck', 'false'];
  run(process.execPath, [compiler, ...strict, '--module', module, '--moduleResolution', resolution, file]);
}
