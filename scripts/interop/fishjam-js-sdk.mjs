// The JavaScript server SDK of later Fishjam releases, unmodified. Run by itself with the folder of the package, the
// address of the node and the token, it uses the SDK as a backend does.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { root } from '../setup.mjs';

const NAME = '@fishjam-cloud/js-server-sdk';
const VERSION = '0.25.0';
const INSTALL_MS = 120_000;
const RUN_MS = 60_000;
const folder = join(root, 'node_modules', '.cache', `fishjam-js-server-sdk-${VERSION}`);

export const fishjamJsSdk = {
  title: `${NAME} ${VERSION} makes rooms and peers, hears of them, and is refused what this server lacks`,
  missing() {
    const stamp = join(folder, 'installed');
    if (existsSync(stamp)) return undefined;
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'package.json'), '{ "private": true }');
    const npm = ['install', '--silent', '--no-audit', '--no-fund', `${NAME}@${VERSION}`];
    const { status } = spawnSync('npm', npm, { cwd: folder, stdio: 'inherit', timeout: INSTALL_MS });
    if (status !== 0) return `${NAME} ${VERSION} from a registry`;
    writeFileSync(stamp, '');

    return undefined;
  },
  async run({ url, token }) {
    const child = spawn(process.execPath, [import.meta.filename, url, token], {
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: RUN_MS,
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (output += data));
    const [code] = await once(child, 'close');

    return code === 0 ? undefined : output;
  },
};

/** Resolves with the types of the notifications up to the deletion of a room that `act` creates and deletes. */
async function notified({ FishjamWSNotifier }, config, act) {
  // Node has a client for websockets since version 22; before, backends bring their own.
  globalThis.WebSocket ??= createRequire(import.meta.url)('ws');
  const types = [];
  await new Promise((resolve, reject) => {
    const fail = (...reason) => reject(new Error(`no notifications: ${reason.map((one) => one.message ?? one)}`));
    const notifier = new FishjamWSNotifier(config, fail, fail);
    for (const type of ['roomCreated', 'peerAdded', 'peerDeleted', 'roomDeleted'])
      notifier.on(type, () => {
        // The subscription may begin between the events of a room.
        if (type === 'roomCreated' || types.length > 0) types.push(type);
        if (types.at(-1) === 'roomDeleted') resolve();
      });
    // The SDK does not tell when its subscription begins.
    const again = () => {
      if (types.length === 0) act().then(() => setTimeout(again, 500), reject);
    };
    again();
  });

  return types;
}

async function use(config) {
  const sdk = createRequire(join(folder, 'package.json'))(NAME);
  const client = new sdk.FishjamClient(config);
  const room = await client.createRoom({ maxPeers: 2, videoCodec: 'vp8' });
  const { peer, peerToken } = await client.createPeer(room.id, { metadata: { name: 'Ann' } });
  assert.ok(peerToken);
  assert.deepEqual(
    (await client.getRoom(room.id)).peers.map(({ id }) => id),
    [peer.id],
  );
  assert.deepEqual(
    (await client.getAllRooms()).map(({ id }) => id),
    [room.id],
  );
  for (const lacking of [
    () => client.createRoom({ roomType: 'livestream' }),
    () => client.createPeer(room.id, { subscribeMode: 'manual' }),
    () => client.createAgent(room.id),
    () => client.createLivestreamViewerToken(room.id),
  ])
    await assert.rejects(lacking, sdk.BadRequestException);
  for (const lacking of [
    () => client.subscribePeer(room.id, peer.id, peer.id),
    () => client.subscribeTracks(room.id, peer.id, ['any']),
    () => client.refreshPeerToken(room.id, peer.id),
  ])
    await assert.rejects(lacking, sdk.PeerNotFoundException);
  await client.deletePeer(room.id, peer.id);
  await client.deleteRoom(room.id);
  await assert.rejects(client.getRoom(room.id), sdk.RoomNotFoundException);

  const types = await notified(sdk, config, async () => {
    const { id } = await client.createRoom();
    await client.createPeer(id);
    await client.deleteRoom(id);
  });
  assert.deepEqual(types, ['roomCreated', 'peerAdded', 'peerDeleted', 'roomDeleted']);
}

if (process.argv[1] === import.meta.filename) {
  const [, , fishjamId, managementToken] = process.argv;
  await use({ fishjamId, managementToken });
  process.exit();
}
