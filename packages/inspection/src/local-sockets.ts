/**
 * Where nodes and tools of one user meet on one machine: Unix sockets in a folder that only this user can open. Access
 * to the socket is the permission to ask; there is no cookie.
 */
import { lstat, mkdir, readdir, rm } from 'node:fs/promises';
import { connect, type Server } from 'node:net';
import { isAbsolute, join } from 'node:path';
import { bindSocket } from '@bloom/distribution';

export interface LocalMachine {
  /** `XDG_RUNTIME_DIR`; null when unset. */
  readonly runtimePath: string | null;
  /** `JF_RESOURCES_BASE_PATH`, absolute. */
  readonly resourcesPath: string;
  /** The system's folder for temporary files. */
  readonly temporaryPath: string;
  /** User id of the process. */
  readonly uid: number;
}

/**
 * Maximum path length of a Unix socket on every system, without the final zero (`sun_path` of unix(4): 104 bytes on
 * macOS, 108 on Linux).
 */
const MAX_PATH_BYTES = 103;
const SUFFIX = '.sock';

/** Returns the folders in which a node may open its socket, preferred first. */
function socketFolders(machine: LocalMachine): string[] {
  const { runtimePath, resourcesPath } = machine;
  // According to the specification of XDG_RUNTIME_DIR, a relative path is ignored.
  const runtime = runtimePath !== null && isAbsolute(runtimePath) ? [join(runtimePath, 'bloom')] : [];

  return [...runtime, join(resourcesPath, 'run'), temporaryFolder(machine)];
}

function temporaryFolder({ temporaryPath, uid }: LocalMachine): string {
  return join(temporaryPath, `bloom-${uid}`);
}

/** A listening socket, or the reason why no folder allowed one. */
export type LocalServer = { readonly path: string; readonly server: Server } | { readonly reasons: readonly string[] };

/** Listens on `<node>.sock` in the first folder that allows it. Replaces a socket whose process has died. */
export async function openLocalServer(node: string, machine: LocalMachine): Promise<LocalServer> {
  const reasons: string[] = [];
  for (const folder of socketFolders(machine)) {
    const path = join(folder, `${node}${SUFFIX}`);
    try {
      await makePrivate(folder, machine.uid);
      await makeRoom(path);
      return { path, server: await bindSocket(path) };
    } catch (error) {
      reasons.push(`${folder}: ${(error as Error).message}`);
    }
  }

  return { reasons };
}

export interface LocalSocket {
  /** Name of the node according to the file name. */
  readonly node: string;
  readonly path: string;
}

/** Returns the sockets that this user may open, including those of dead processes. */
export async function findLocalSockets(machine: LocalMachine): Promise<LocalSocket[]> {
  const sockets: LocalSocket[] = [];
  for (const folder of socketFolders(machine)) {
    try {
      // Root may ask the nodes of every user. In a folder open to all users, anyone could create one for root.
      if (machine.uid !== 0 || folder === temporaryFolder(machine)) await checkPrivate(folder, machine.uid);
      const names = (await readdir(folder)).filter((name) => name.endsWith(SUFFIX)).toSorted();
      sockets.push(...names.map((name) => ({ node: name.slice(0, -SUFFIX.length), path: join(folder, name) })));
    } catch {
      // The folder does not exist or is not for this user.
    }
  }

  return sockets;
}

/** Creates the folder if missing. @throws Error unless only its owner, this user, can enter it */
async function makePrivate(folder: string, uid: number): Promise<void> {
  await mkdir(folder, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  await checkPrivate(folder, uid);
}

async function checkPrivate(folder: string, uid: number): Promise<void> {
  // Not stat: in a folder open to all users, a link could lead anywhere.
  const info = await lstat(folder);
  if (!info.isDirectory()) throw new Error('it is not a folder');
  if (info.uid !== uid) throw new Error(`it belongs to the user ${info.uid}, not to ${uid}`);
  const mode = info.mode & 0o777;
  if ((mode & 0o077) !== 0) throw new Error(`it is open to other users (mode 0${mode.toString(8)})`);
}

/** Removes a leftover socket. @throws Error when the path is too long or a living process listens there */
async function makeRoom(path: string): Promise<void> {
  const bytes = Buffer.byteLength(path);
  if (bytes > MAX_PATH_BYTES)
    throw new Error(`a socket path may have at most ${MAX_PATH_BYTES} bytes; this one has ${bytes}`);
  if (await isListening(path)) throw new Error('another process listens there under this name');
  await rm(path, { force: true });
}

function isListening(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    const end = (answer: boolean): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.once('connect', () => end(true));
    socket.once('error', ({ code }: NodeJS.ErrnoException) => end(code !== 'ECONNREFUSED' && code !== 'ENOENT'));
  });
}
