import { parseNodeName } from '@bloom/distribution';
import { names, PortMapperError } from '@bloom/port-mapper';
import { EXIT, Failure } from '../exit.js';
import type { Machine } from '../machine.js';
import { toFailure } from './failures.js';
import { ownName } from './own-name.js';
import { probe, ProbeFailed } from './probe.js';

export interface EntryOptions {
  /** `name@host`, the `name` of a node on this machine, or undefined for the only node there. */
  readonly node: string | undefined;
  readonly mapperPort: number;
  readonly cookie: string;
  readonly timeoutMs: number;
}

/** The node to link with. */
export interface Entry {
  readonly name: string;
  /** Its address; undefined to resolve its host name. */
  readonly address?: string;
  /** Its Unix socket on this machine, used instead of host and port. */
  readonly via?: string;
  /** Names of other nodes that may have been meant: they must be members of the same cluster. */
  readonly others?: readonly string[];
}

const LOCAL = '127.0.0.1';

/** @throws Failure */
export async function findEntry(options: EntryOptions, machine: Machine): Promise<Entry> {
  const { node } = options;
  if (node?.includes('@') === true) {
    try {
      return { name: parseNodeName(node).full };
    } catch (error) {
      throw new Failure(EXIT.usage, (error as Error).message);
    }
  }
  const alive = await listLocal(options);
  const found = node === undefined ? alive : alive.filter(({ name }) => name === node);
  const [first] = found;
  const known = alive.map(({ name }) => name).join(', ');
  if (first === undefined) {
    if (node !== undefined) {
      const others = alive.length === 0 ? 'none' : known;
      throw new Failure(EXIT.unknown, `no node called ${node} is registered on this machine; others: ${others}`);
    }
    throw new Failure(EXIT.unreachable, 'a port mapper runs on this machine, but no node is registered with it', {
      advice: 'name a node of another machine with --node name@host',
    });
  }
  const others = found.filter((other) => other !== first).map(({ name }) => name);

  return { ...(await askItsName(first, options, machine)), others };
}

async function listLocal({ mapperPort, timeoutMs }: EntryOptions) {
  try {
    return (await names({ host: LOCAL, port: mapperPort, timeoutMs })).nodes;
  } catch (error) {
    if (!(error instanceof PortMapperError) || error.code !== 'PORT_MAPPER_UNREACHABLE') throw toFailure(error);
    throw new Failure(
      EXIT.unreachable,
      `no node of this user runs on this machine, and no port mapper answers (port ${mapperPort})`,
      {
        advice:
          'run this as the user of the node, in its folder or with its JF_RESOURCES_BASE_PATH; or name a node of a cluster with --node name@host',
      },
    );
  }
}

/** Asks a node for its full name: the port mapper knows only the part before the `@`. */
async function askItsName(
  { name, port }: { name: string; port: number },
  { cookie, timeoutMs }: EntryOptions,
  machine: Machine,
): Promise<Entry> {
  let failure: ProbeFailed | undefined;
  // A node may listen on a single address of its machine.
  for (const address of [LOCAL, ...machine.addresses]) {
    try {
      const self = ownName(machine, `${name}@${LOCAL}`);
      const peer = await probe({ at: { host: address, port }, target: undefined, self, cookie, timeoutMs });
      return { name: peer.name, address };
    } catch (error) {
      if (!(error instanceof ProbeFailed)) throw error;
      failure = error;
      if (error.layer !== 'tcp') break;
    }
  }
  throw toFailure(failure, name);
}
