import { isIP } from 'node:net';
import { ResolveError, systemResolver } from '@bloom/discovery';
import { type Identity, parseNodeName } from '@bloom/distribution';
import { lookUp, type NodeEntry, names, PortMapperError } from '@bloom/port-mapper';
import type { Asker } from '../asker.js';
import { type Cookie, fingerprint } from '../cookie.js';
import { EXIT, type ExitCode, Failure } from '../exit.js';
import { counted, span } from '../text/units.js';
import type { Machine } from '../machine.js';
import type { Entry } from './entry.js';
import { toFailure } from './failures.js';
import { LayerFailure, failedCookie, failedHandshake, failedTcp, VERSION } from './findings.js';
import type { LocalEntry } from './local.js';
import { ownName } from './own-name.js';
import { probe, ProbeFailed, type ProbeLayer } from './probe.js';

/** Layers in the order in which they are tested. The first two concern this program itself. */
export type Layer =
  | 'settings'
  | 'socket'
  | 'resolve'
  | 'port mapper'
  | 'name'
  | ProbeLayer
  | 'service'
  | 'request'
  | 'media';

export interface LayerResult {
  readonly layer: Layer;
  readonly ok: boolean;
  readonly text: string;
  readonly ms: number;
}

export interface Diagnosis {
  readonly target: string;
  /** Full name of the node, once known. */
  readonly node: string | null;
  readonly layers: readonly LayerResult[];
  readonly failed: {
    readonly layer: Layer;
    readonly exit: ExitCode;
    readonly message: string;
    readonly fix: string;
  } | null;
}

export interface DoctorOptions {
  /** `name@host`, the `name` of a node on this machine, or undefined. */
  readonly node: string | undefined;
  readonly mapperPort: number;
  readonly timeoutMs: number;
  /** Returns the node with a socket for this user, if any. @throws Failure */
  readonly local: () => Promise<LocalEntry | undefined>;
  /** @throws Failure */
  readonly cookie: () => Promise<Cookie>;
  /** Opens the link that all commands use. */
  readonly open: (entry: Entry, cookie: string) => Promise<Asker>;
  readonly machine: Machine;
}

/** Tests one layer after another up to the first failure. Never throws. */
export async function diagnose(options: DoctorOptions): Promise<Diagnosis> {
  const examination = new Examination(options);
  let failed: Diagnosis['failed'] = null;
  try {
    await examination.all();
  } catch (error) {
    const { layer } = examination;
    const failure = error instanceof LayerFailure ? error : fromFailure(toFailure(error));
    examination.results.push({ layer, ok: false, text: failure.text, ms: examination.elapsed() });
    failed = { layer, exit: failure.exit, message: failure.message, fix: failure.fix };
  }
  return { target: options.node ?? 'this machine', node: examination.node, layers: examination.results, failed };
}

function fromFailure(failure: Failure): LayerFailure {
  return new LayerFailure({
    exit: failure.exit,
    text: failure.message,
    message: `${failure.message}.`,
    fix: failure.advice ?? '',
  });
}

class Examination {
  readonly results: LayerResult[] = [];
  layer: Layer = 'settings';
  node: string | null = null;
  readonly #options: DoctorOptions;
  #since = performance.now();

  constructor(options: DoctorOptions) {
    this.#options = options;
  }

  elapsed(): number {
    return Math.round((performance.now() - this.#since) * 10) / 10;
  }

  #enter(layer: Layer): void {
    this.layer = layer;
    this.#since = performance.now();
  }

  #passed(text: string): void {
    this.results.push({ layer: this.layer, ok: true, text, ms: this.elapsed() });
  }

  async all(): Promise<void> {
    const local = await this.#options.local();
    if (local !== undefined) {
      this.#enter('socket');
      this.#passed(`${local.via} of ${local.name}`);
      this.node = local.name;
      await this.#service(local, '');
      return;
    }
    const cookie = await this.#options.cookie();
    const { node } = this.#options;
    const [alive, host] = splitName(node);
    const address = await this.#resolve(host);
    const registered = await this.#mapper(address);
    const entry = await this.#name(address, alive, registered);
    const target = node?.includes('@') === true ? node : undefined;
    const peer = await this.#handshake({ ...entry, address }, target, cookie);
    this.node = peer.name;
    await this.#service({ name: peer.name, address }, cookie.value);
  }

  async #resolve(host: string | undefined): Promise<string> {
    this.#enter('resolve');
    if (host === undefined) {
      this.#passed('this machine -> 127.0.0.1');
      return '127.0.0.1';
    }
    if (isIP(host) !== 0) {
      this.#passed(`${host} is an address`);
      return host;
    }
    try {
      // Nodes try the first address first.
      const [address = ''] = await systemResolver().addresses(host);
      this.#passed(`${host} -> ${address}`);
      return address;
    } catch (error) {
      const code = error instanceof ResolveError ? error.code : 'unknown';
      throw new LayerFailure({
        exit: EXIT.unreachable,
        text: `${host} has no address (${code})`,
        message: `This machine finds no address for the name ${host}.`,
        fix: 'Check its spelling, and that this machine asks a DNS server that knows the hosts of the cluster (or has the name in /etc/hosts).',
      });
    }
  }

  async #mapper(address: string): Promise<string[]> {
    this.#enter('port mapper');
    const { mapperPort: port, timeoutMs } = this.#options;
    const where = `${address}:${port}`;
    try {
      const { nodes } = await names({ host: address, port, timeoutMs });
      const found = nodes.map(({ name }) => name).toSorted();
      this.#passed(`${where} knows: ${found.length === 0 ? 'no node' : found.join(', ')}`);
      return found;
    } catch (error) {
      if (error instanceof PortMapperError && error.code === 'PORT_MAPPER_UNREACHABLE') {
        const { code = 'unknown' } = (error.cause ?? {}) as NodeJS.ErrnoException;
        throw new LayerFailure({
          exit: EXIT.unreachable,
          text: `no answer on ${where} (${code})`,
          message: 'No port mapper runs there, so no node does either; or it uses another port.',
          fix: 'Start the node with JF_DIST_ENABLED=true; when ERL_EPMD_PORT is set for the nodes, set it here too.',
        });
      }
      throw new LayerFailure({
        exit: EXIT.unreachable,
        text: `${where}: ${(error as Error).message}`,
        message: `What answers on ${where} is not a port mapper, or nothing answers within ${span(timeoutMs)}.`,
        fix: 'A firewall drops the packets, or another program uses that port. Open the port to this machine, or set ERL_EPMD_PORT.',
      });
    }
  }

  async #name(address: string, alive: string | undefined, registered: readonly string[]): Promise<NodeEntry> {
    this.#enter('name');
    const { mapperPort: port, timeoutMs } = this.#options;
    const name = alive ?? registered[0];
    if (name === undefined || (alive === undefined && registered.length > 1)) {
      const why = name === undefined ? 'no node is registered' : `${registered.length} nodes are registered`;
      throw new LayerFailure({
        exit: name === undefined ? EXIT.unreachable : EXIT.usage,
        text: why,
        message: `On this machine ${why}, and no name was given.`,
        fix: `Name the node: bloomctl doctor ${name ?? 'name@host'}`,
      });
    }
    const entry = await lookUp({ host: address, port, timeoutMs }, name);
    if (entry === undefined) {
      const others = registered.length === 0 ? 'no other node' : registered.join(', ');
      throw new LayerFailure({
        exit: EXIT.unknown,
        text: `${name} is not registered; there: ${others}`,
        message: `No node called ${name} runs on ${address}.`,
        fix: 'Start it, or use one of the registered names. A node is registered under the part of JF_DIST_NODE_NAME before the @.',
      });
    }
    this.#passed(`${name} listens on ${entry.port}`);
    return entry;
  }

  async #handshake(
    entry: NodeEntry & { address: string },
    target: string | undefined,
    cookie: Cookie,
  ): Promise<Identity> {
    const { address } = entry;
    const { timeoutMs, machine } = this.#options;
    const where = `${address}:${entry.port}`;
    this.#enter('tcp');
    const passed = (layer: ProbeLayer): void => {
      if (layer === 'tcp') {
        this.#passed(`${where} connected`);
        this.#enter('handshake');
      } else if (layer === 'handshake') {
        this.#passed(`distribution version ${VERSION}, flags accepted`);
        this.#enter('cookie');
      } else this.#passed(`accepted. ours ${fingerprint(cookie.value)}…, from ${cookie.source}`);
    };
    try {
      if (entry.highest < VERSION || entry.lowest > VERSION) throw await this.#otherVersion(entry, where);
      return await probe({
        at: { host: address, port: entry.port },
        target,
        self: ownName(machine, target ?? `x@${address}`),
        cookie: cookie.value,
        timeoutMs,
        passed,
      });
    } catch (error) {
      if (!(error instanceof ProbeFailed)) throw error;
      if (error.layer === 'tcp') throw failedTcp(error, where, timeoutMs);
      throw error.layer === 'handshake'
        ? failedHandshake(error, timeoutMs)
        : failedCookie(error, target ?? entry.name, cookie);
    }
  }

  async #otherVersion({ name, lowest, highest }: NodeEntry, where: string): Promise<LayerFailure> {
    this.#passed(`${where}, not dialled`);
    this.#enter('handshake');
    const versions = lowest === highest ? `version ${highest}` : `versions ${lowest} to ${highest}`;
    return new LayerFailure({
      exit: EXIT.unreachable,
      text: `${name} speaks distribution ${versions}, not ${VERSION}`,
      message: `${name} is not a Bloom node and runs an Erlang older than OTP 23.`,
      fix: 'Choose another node; only nodes of Bloom answer this tool.',
    });
  }

  async #service(entry: Entry, cookie: string): Promise<void> {
    this.#enter('service');
    const asker = await this.#options.open(entry, cookie);
    try {
      const { answer } = await asker.ask('hello', {}).catch((error: unknown) => {
        const failure = toFailure(error, entry.name);
        if (failure.exit === EXIT.timeout) throw failure;
        throw new LayerFailure({
          exit: failure.exit,
          text: failure.message,
          message: `${entry.name} accepts this tool but does not answer it.`,
          fix: 'Set JF_INSPECTION=full or read on that node; a node of another kind, such as an Erlang shell, never answers.',
        });
      });
      this.#passed(
        `Bloom ${answer.version}, protocol ${answer.protocol}, ${answer.mode === 'full' ? 'may be changed' : 'read only'}`,
      );
      this.#enter('request');
      const { answer: node } = await asker.ask('node', {});
      this.#passed(`${node.name} is ${node.state}, ${counted(node.rooms, 'room')}, ${counted(node.peers, 'peer')}`);
      const { media } = node;
      if (media === undefined || media.people === 0) return;
      // Never a failure: the people's own networks may be at fault.
      this.#enter('media');
      this.#passed(media.note ?? `the last ${counted(media.people, 'person', 'people')} reached the media ports`);
    } finally {
      await asker.close();
    }
  }
}

function splitName(node: string | undefined): [alive: string | undefined, host: string | undefined] {
  if (node === undefined) return [undefined, undefined];
  if (!node.includes('@')) return [node, undefined];
  try {
    const { alive, host } = parseNodeName(node);
    return [alive, host];
  } catch (error) {
    throw new Failure(EXIT.usage, (error as Error).message);
  }
}
