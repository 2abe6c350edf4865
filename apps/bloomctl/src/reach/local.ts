/** Nodes of this machine and user, which answer on a Unix socket without a cookie or port mapper. */
import { join, resolve } from 'node:path';
import { LOCAL_COOKIE, isNodeName } from '@bloom/distribution';
import { findLocalSockets, type LocalMachine } from '@bloom/inspection';
import { EXIT, Failure } from '../exit.js';
import { alive } from '../text/units.js';
import type { Machine } from '../machine.js';
import type { Entry } from './entry.js';
import { ownName } from './own-name.js';
import { probe, ProbeFailed } from './probe.js';

export type LocalEntry = Entry & { readonly via: string; readonly isSilent: boolean };

/** Returns the nodes with a socket that this user may open, silent ones last. Dead nodes are left out. */
export async function localNodes(machine: Machine, timeoutMs: number): Promise<LocalEntry[]> {
  const { uid } = machine;
  if (uid === undefined) return [];
  const sockets = await findLocalSockets(localMachine(machine, uid));
  const nodes = await Promise.all(
    sockets
      .filter(({ node }) => isNodeName(node))
      .map(({ node, path }) => identify({ node, via: path }, machine, timeoutMs)),
  );

  return nodes.filter((node) => node !== undefined).toSorted((a, b) => Number(a.isSilent) - Number(b.isSilent));
}

/** Returns the first node with this name, or the first of all; `others` are the nodes that may also have been meant. */
export function chooseLocal(nodes: readonly LocalEntry[], wanted: string | undefined): LocalEntry | undefined {
  const found = wanted === undefined ? nodes : nodes.filter(({ name }) => name === wanted || alive(name) === wanted);
  const [first, ...rest] = found;
  if (first === undefined) return undefined;

  return { ...first, others: rest.map(({ name }) => name) };
}

function localMachine({ env, cwd, temporaryPath }: Machine, uid: number): LocalMachine {
  const given = env['JF_RESOURCES_BASE_PATH'] ?? env['FJ_RESOURCES_BASE_PATH'];
  const resources = given === undefined || given === '' ? 'bloom_resources' : given;
  const runtimePath = env['XDG_RUNTIME_DIR'] ?? join('/run/user', String(uid));

  return { runtimePath, resourcesPath: resolve(cwd, resources), temporaryPath, uid };
}

/** Returns the node behind a socket. A live but silent node keeps the name of its file. */
async function identify(
  { node, via }: { node: string; via: string },
  machine: Machine,
  timeoutMs: number,
): Promise<LocalEntry | undefined> {
  try {
    const self = ownName(machine, node);
    const peer = await probe({ at: { path: via }, target: undefined, self, cookie: LOCAL_COOKIE, timeoutMs });

    return { name: peer.name, via, isSilent: false };
  } catch (error) {
    if (!(error instanceof ProbeFailed)) throw error;

    return error.layer === 'tcp' ? undefined : { name: node, via, isSilent: true };
  }
}

/** @throws Failure unless all these nodes are members of the answering cluster, so that any of them could answer */
export function mustBeMembers(others: readonly string[], members: readonly string[]): void {
  const strangers = others.filter((name) => !members.some((member) => member === name || alive(member) === name));
  if (strangers.length === 0) return;
  const [asked = ''] = members;
  throw new Failure(EXIT.usage, `several nodes run on this machine: ${[asked, ...strangers].join(', ')}`, {
    advice: `choose one, such as --node ${asked}`,
  });
}
