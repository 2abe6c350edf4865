// Part of imports.mjs: the order of the folders inside each package.
import { relative } from 'node:path';
import { isForTests, root } from './modules.mjs';

/**
 * The floors of each package with several folders, from the bottom up. The modules of a folder may import from folders
 * of earlier lines, not of the same line or later ones.
 * @type {Readonly<Record<string, readonly (readonly string[])[]>>}
 */
const FLOORS = {
  'packages/actors': [['observation'], ['cell'], ['remote']],
  'packages/components': [
    ['h264', 'mp4', 'ogg', 's3'],
    ['vpx', 'webm'],
    ['av'],
    ['mix'],
    ['file', 'hls', 'recording', 'rtsp', 'sip'],
  ],
  'packages/distribution': [['handshake'], ['link'], ['membership']],
  'packages/inspection': [['process', 'protocol'], ['inspector'], ['answers']],
  'packages/livekit': [['session'], ['api'], ['socket']],
  'packages/rooms': [['peer'], ['room'], ['cluster']],
  'packages/rtp': [['payload-formats', 'rtcp']],
  'packages/sfu': [['variants'], ['crossing'], ['bandwidth', 'data'], ['forwarding'], ['engine']],
  'packages/signaling': [['events'], ['negotiation'], ['socket']],
  'packages/sip': [['media', 'transport'], ['transactions'], ['calls']],
  'packages/webrtc': [['data', 'sdp', 'srtp', 'stun'], ['dtls', 'ice', 'relay'], ['transport'], ['warm-up']],
  'apps/bench': [
    ['actors', 'crossing', 'distribution', 'network'],
    ['sfu'],
    ['http', 'load'],
    ['client', 'codecs', 'data', 'hls', 'joins', 'soak'],
    ['mix'],
  ],
  'apps/bloomctl': [
    ['completion', 'dump', 'text'],
    ['reach'],
    ['outside'],
    ['loadtest', 'people'],
    ['views'],
    ['top'],
    ['commands'],
  ],
  'apps/dashboard': [
    ['live', 'media', 'ui'],
    ['call', 'check', 'watch'],
    ['guest', 'views'],
  ],
};

/** Returns a module's package and its folder below `src`; `folder` is undefined for a file in `src` itself. */
function placeOf(path) {
  const [group, name, , ...rest] = relative(root, path).split('/');
  return { home: `${group}/${name}`, folder: rest.length > 1 ? rest[0] : undefined };
}

/**
 * Returns the imports that go up or sideways between the folders of a package, and folders without a floor. A file in
 * `src` itself is on the highest floor that it imports from, directly or through others of its kind.
 */
export function checkFloors(modules, floors = FLOORS) {
  const problems = [];
  const own = [...modules.values()].filter(({ path, group }) => /^(packages|apps)$/.test(group) && !isForTests(path));

  const foldersOf = new Map();
  for (const { path } of own) {
    const { home, folder } = placeOf(path);
    if (folder !== undefined) foldersOf.set(home, (foldersOf.get(home) ?? new Set()).add(folder));
  }
  for (const [home, folders] of foldersOf) {
    for (const folder of folders)
      if (folders.size > 1 && !floors[home]?.flat().includes(folder))
        problems.push(`${home}/src/${folder} has no floor: add it to scripts/check/floors.mjs`);
  }

  const heights = new Map();
  const heightOf = (path) => {
    const { home, folder } = placeOf(path);
    if (folder !== undefined) return floors[home]?.findIndex((line) => line.includes(folder)) ?? -1;
    if (!heights.has(path)) {
      heights.set(path, -1);
      const below = neighbours(path).map(heightOf);
      heights.set(path, Math.max(-1, ...below));
    }
    return heights.get(path);
  };
  const neighbours = (path) =>
    (modules.get(path)?.imports ?? [])
      .map(({ target }) => target)
      .filter((target) => target !== undefined && !isForTests(target) && placeOf(target).home === placeOf(path).home);

  for (const { path } of own) {
    const from = placeOf(path);
    if (from.folder === undefined) continue;
    for (const target of neighbours(path)) {
      const to = placeOf(target);
      if (to.folder === from.folder) continue;
      const [here, there] = [heightOf(path), heightOf(target)];
      if (there > here || (there === here && to.folder !== undefined))
        problems.push(
          `${relative(root, path)}: '${relative(root, target)}' is up or sideways (floor ${there} from ${here})`,
        );
    }
  }

  return problems;
}
