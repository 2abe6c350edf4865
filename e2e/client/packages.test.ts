// Tests the published packages through their tarballs.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { nightly } from '../harness/needs.js';
import { repository } from '../harness/processes.js';

/** `limit`: maximum size of a minified and gzipped bundle in bytes. `others`: further files of the package. */
const PACKAGES = [
  {
    name: 'client',
    bundles: ['index.js', 'index.cjs'],
    others: ['measurement.js', 'moving.js', 'encryption.js', 'encryption.cjs', 'encryption-worker.js'],
    limit: 13_000,
  },
  {
    name: 'react',
    bundles: ['index.js', 'index.cjs'],
    others: ['kit.js', 'kit.cjs', 'kit.css', 'kit.css.d.cts'],
    limit: 3_500,
  },
  { name: 'server-sdk', bundles: ['index.js', 'index.cjs', 'browser.js'], others: [], limit: 8_000 },
] as const;
/** Maximum size of everything that a page with the kit loads besides React, minified and gzipped, in bytes. */
const KIT_LIMIT = 30_000;
const READ_BY_PEOPLE = ['LICENSE', 'README.md', 'package.json'];

let folder: string;
const packed = new Map<string, { tarball: string; files: string[] }>();
const installed = (name: string, file = ''): string => join(folder, 'node_modules', '@bloom', name, file);

/** Runs a program of this workspace in the folder of a user who installed the packages. */
function run(program: string, args: string[], input = ''): string {
  return execFileSync(program, args, { cwd: folder, encoding: 'utf8', input, stdio: ['pipe', 'pipe', 'pipe'] });
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
  for (const name of [
    'ws',
    '@bufbuild',
    'react',
    'react-dom',
    'scheduler',
    '@types/node',
    '@types/ws',
    '@types/react',
    'csstype',
  ]) {
    symlinkSync(join(repository, 'node_modules', name), join(folder, 'node_modules', name));
  }
}, 180_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Returns the size of a file, minified and gzipped, in bytes. */
function compressed(name: string, file: string): number {
  const esbuild = join(repository, 'node_modules', 'esbuild', 'bin', 'esbuild');
  const format = file.endsWith('.css') ? [] : [`--format=${file.endsWith('.cjs') ? 'cjs' : 'esm'}`];
  // Beside an `import()` in CommonJS, esbuild would add functions that nobody calls.
  const text = readFileSync(installed(name, `dist/${file}`), 'utf8').replaceAll(/\bimport\(/g, 'load(');
  const loader = `--loader=${file.endsWith('.css') ? 'css' : 'js'}`;
  return gzipSync(run(esbuild, ['--minify', loader, ...format], text)).length;
}

describe.each(PACKAGES)('@bloom/$name', ({ name, bundles, others, limit }) => {
  const manifest = () => JSON.parse(readFileSync(installed(name, 'package.json'), 'utf8'));

  test('contains its bundles, their types, and its documents', () => {
    const { files } = packed.get(name)!;
    const found = files.filter((file) => !/^dist\/types(-cjs)?\/((kit|encryption)\/)?[\w-]+\.d\.c?ts$/.test(file));
    const built = [...bundles, ...others].map((file) => `dist/${file}`);
    expect(found.toSorted()).toEqual([...READ_BY_PEOPLE, ...built].toSorted());
    for (const file of files) {
      const text = readFileSync(installed(name, file), 'utf8');
      expect([file, /sourceMappingURL|from ['"]@bloom\/(protocol|time)['"]/.exec(text)?.[0]]).toEqual([
        file,
        undefined,
      ]);
    }
  });

  test('is public, with provenance, and depends on published packages only', () => {
    const { publishConfig, version, dependencies = {} } = manifest();
    expect(publishConfig).toEqual({ access: 'public', provenance: true });
    for (const [dependency, range] of Object.entries(dependencies).filter(([one]) => one.startsWith('@bloom/'))) {
      expect(PACKAGES.map((one) => `@bloom/${one.name}`)).toContain(dependency);
      expect(range).toBe(version);
    }
  });

  test('names the repository and its folder there, which npm compares with the provenance', () => {
    const { repository: whole } = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8'));
    expect(manifest().repository).toEqual({ ...whole, directory: `packages/${name}` });
  });

  test('carries the licence that it names', () => {
    expect(manifest().license).toBe('Apache-2.0');
    expect(readFileSync(installed(name, 'LICENSE'), 'utf8')).toBe(readFileSync(join(repository, 'LICENSE'), 'utf8'));
  });

  test('would be published without a complaint', () => {
    const args = ['publish', '--dry-run', '--offline', '--loglevel=warn', packed.get(name)!.tarball];
    const { status, stderr } = spawnSync('npm', args, { cwd: folder, encoding: 'utf8' });
    // A rehearsal needs no account.
    const complaints = stderr
      .split('\n')
      .filter((line) => line !== '' && !line.includes('requires you to be logged in'));
    expect(complaints).toEqual([]);
    expect(status).toBe(0);
  });

  test(`stays small: below ${limit / 1000} kB, minified and gzipped`, () => {
    for (const bundle of bundles) expect(compressed(name, bundle)).toBeLessThan(limit);
  });

  test('has types that every module resolution finds', async () => {
    const tarball = new Uint8Array(readFileSync(packed.get(name)!.tarball));
    const result = await checkPackage(createPackageFromTarballData(tarball), { excludeEntrypoints: [/\.css$/] });
    expect('problems' in result && result.problems).toEqual([]);
  });
});

test(`a page with the kit loads less than ${KIT_LIMIT / 1000} kB besides React`, () => {
  const files = [
    ...['index.js', 'measurement.js'].map((file) => ['client', file]),
    ...['index.js', 'kit.js', 'kit.css'].map((file) => ['react', file]),
  ];
  const sizes = files.map(([name, file]) => compressed(name as string, file as string));
  expect(sizes.reduce((sum, size) => sum + size)).toBeLessThan(KIT_LIMIT);
});

test('a page that takes one part of the kit does not load the others', () => {
  writeFileSync(
    join(folder, 'part.mjs'),
    `import { ConnectionStatus } from '@bloom/react/kit'; console.log(ConnectionStatus);`,
  );
  const esbuild = join(repository, 'node_modules', 'esbuild', 'bin', 'esbuild');
  const bundle = run(esbuild, [
    '--bundle',
    '--minify',
    '--format=esm',
    '--packages=external',
    '--alias:@bloom/react/kit=./node_modules/@bloom/react/dist/kit.js',
    'part.mjs',
  ]);
  expect(bundle).toContain('Reconnecting');
  expect(bundle).not.toContain('Share screen');
  expect(gzipSync(bundle).length).toBeLessThan(1_500);
});

test('the browser packages load as ES modules and as CommonJS, with one context for hooks and kit', () => {
  const use = `console.log(new RoomClient().state, typeof useRoom, typeof CallView);
    const room = { client: new RoomClient(), state: 'idle', error: null };
    console.log(renderToString(createElement(RoomProvider, { room }, createElement(ConnectionStatus))));`;
  const names = [
    ['{ RoomClient }', '@bloom/client'],
    ['{ Encryption }', '@bloom/client/encryption'],
    ['{ RoomProvider, useRoom }', '@bloom/react'],
    ['{ CallView, ConnectionStatus }', '@bloom/react/kit'],
    ['{ createElement }', 'react'],
    ['{ renderToString }', 'react-dom/server'],
  ];
  const imports = names.map(([what, from]) => `import ${what} from '${from}';`);
  const requires = names.map(([what, from]) => `const ${what} = require('${from}');`);
  writeFileSync(join(folder, 'load.mjs'), [...imports, use].join('\n'));
  writeFileSync(join(folder, 'load.cjs'), [...requires, use].join('\n'));
  const html = '<span class="bloom-status" data-state="idle" role="status">Connecting …</span>';
  for (const file of ['load.mjs', 'load.cjs'])
    expect(run(process.execPath, [file])).toBe(`idle function function\n${html}\n`);
});

test('runs the server SDK as an ES module and as CommonJS', () => {
  const use = `const url = 'http://h'; new BloomClient({ url, token: 't' }); console.log(typeof parseWebhook, BloomApiError.name);`;
  const names = '{ BloomApiError, BloomClient, parseWebhook }';
  writeFileSync(join(folder, 'use.mjs'), `import ${names} from '@bloom/server-sdk'; ${use}`);
  writeFileSync(join(folder, 'use.cjs'), `const ${names} = require('@bloom/server-sdk'); ${use}`);
  for (const file of ['use.mjs', 'use.cjs']) expect(run(process.execPath, [file])).toBe('function BloomApiError\n');
});

test.each([
  ['a page', ['--platform=browser']],
  ['an edge runtime', ['--platform=neutral', '--conditions=edge-light,worker']],
])('bundles the server SDK for %s without anything from Node', (_runtime, options) => {
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

/** The oldest supported compiler, which is installed in the folder of these tests, and the newest. */
const COMPILERS = [
  ['the oldest supported TypeScript', join(repository, 'e2e', 'node_modules', 'typescript')],
  ['the newest TypeScript', join(repository, 'node_modules', 'typescript')],
] as const;
/** Each kind of file with its module and resolution; the last by night only. */
const KINDS = [
  ['mts', 'node16', 'node16'],
  ['ts', 'esnext', 'bundler'],
  ['cts', 'node16', 'node16'],
] as const;
const CONSUMERS = nightly ? KINDS : KINDS.slice(0, 2);
const BACKEND = `import { BloomClient, parseWebhook, type Component } from '@bloom/server-sdk';
const playable = (component: Component): boolean => component.type === 'hls' && component.properties.playable;
const source = (component: Component): string =>
  component.type === 'rtsp' ? component.properties.sourceUri : component.id;
const hls = new BloomClient({ url: 'http://h', token: 't' }).addComponent('r', 'hls', {});
const shown = async (): Promise<boolean> => (await hls).properties.playable;
const room: string | undefined = parseWebhook(Buffer.alloc(0))?.roomId;`;
const PAGE = `import { RoomClient, type DataMessage, type RemoteTrack } from '@bloom/client';
import { RoomProvider, useMessages, useRoom, useTracks, VideoTile } from '@bloom/react';
import { CallView, type JoiningMedia, nameOfPeer, PreJoin, usePreview } from '@bloom/react/kit';
import '@bloom/react/kit.css';
const entrance = (): unknown => PreJoin({ preview: usePreview(), name: '', onName: () => {}, onJoin: () => {} });
const whole = (media: JoiningMedia): unknown => CallView({ title: 'room', name: 'Ann', media });
const named = (client: RoomClient): readonly string[] => client.peers.map(nameOfPeer);
const tracks = (client: RoomClient): readonly RemoteTrack[] => client.peers.flatMap((peer) => peer.tracks);
const shown = (): unknown => useTracks('video').map((track) => VideoTile({ track }));
interface Person { readonly name: string }
const names = (client: RoomClient<Person>): readonly string[] => client.peers.map(({ metadata }) => metadata.name);
const labels = (): readonly string[] => useTracks<Person>('video').map(({ metadata }) => metadata.name);
const greet = (client: RoomClient<Person>): unknown => client.on('peerJoined', ({ metadata }) => metadata.name);
const within = (): unknown => RoomProvider({ room: useRoom<Person>(null), children: null });
const last: DataMessage | undefined = useMessages('chat').messages[0];
const blob = (bytes: Exclude<DataMessage['data'], string>): Blob => new Blob([bytes]);`;

test('the oldest supported TypeScript is 5.4', () => {
  expect(JSON.parse(readFileSync(join(COMPILERS[0][1], 'package.json'), 'utf8')).version).toMatch(/^5\.4\./);
});

describe.each(COMPILERS)('with %s', (_name, compiler) => {
  test.each(CONSUMERS)(
    'compiles the types of the server SDK in a .%s file with %s, %s',
    (extension, module, moduleResolution) => {
      compile(compiler, {
        file: `backend.${extension}`,
        text: BACKEND,
        types: 'node',
        resolution: [module, moduleResolution],
      });
    },
  );

  test.each(CONSUMERS)(
    'compiles the types of the browser packages in a .%s file with %s, %s',
    (extension, module, moduleResolution) => {
      compile(compiler, {
        file: `page.${extension}`,
        text: PAGE,
        types: 'react',
        resolution: [module, moduleResolution],
      });
    },
  );
});

interface Source {
  readonly file: string;
  readonly text: string;
  readonly types: string;
  readonly resolution: readonly [string, string];
}

function compile(compiler: string, { file, text, types, resolution: [module, resolution] }: Source): void {
  writeFileSync(join(folder, file), text);
  const strict = ['--strict', '--noEmit', '--target', 'es2022', '--types', types, '--skipLibCheck', 'false'];
  const modules = ['--module', module, '--moduleResolution', resolution];
  run(process.execPath, [join(compiler, 'bin', 'tsc'), ...strict, ...modules, file]);
}
