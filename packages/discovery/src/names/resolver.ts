import { isIP, type LookupFunction } from 'node:net';
import { hostname, networkInterfaces } from 'node:os';
import { domainToASCII } from 'node:url';
import { type Clock, inTime, systemClock } from '@bloom/time';
import type { Question, RecordData, RecordType } from './answer.js';
import { AnswerCache } from './answer-cache.js';
import { exchange, graceMs } from './exchange.js';
import { MachineFiles } from './machine-files.js';
import { inRacingOrder } from './race.js';
import { candidateNames, type ResolverConfig } from './resolv-conf.js';
import { QuerySlots } from './query-slots.js';
import { RefusedError, ResolveError } from './resolve-error.js';

/** How long to wait for the addresses of the second family once the first is known. */
const SECOND_FAMILY_MS = 250;
const COMPLETE_MS = 2_000;
const MAX_NAME = 253;
const MAX_LABEL = 63;

export interface ResolverOptions {
  /** Default: the files of the system. */
  readonly resolvConf?: string;
  readonly hosts?: string;
  /** Port of the name servers; default 53. */
  readonly port?: number;
  /** Time limit for one answer of one server; default from resolv.conf. */
  readonly timeoutMs?: number;
  readonly clock?: Clock;
}

export interface AddressOptions {
  /** Asks the name servers even if an answer is known, and waits longer for the second family. */
  readonly isFresh?: boolean;
  /** Queries addresses of this family alone. Otherwise the slower family may be missing. */
  readonly family?: 4 | 6 | undefined;
}

/**
 * Resolves names as this machine is configured: hosts file, name servers, search list. Unlike `getaddrinfo`, it blocks
 * no thread, so a silent name server delays only lookups of its names.
 */
export class Resolver {
  readonly #options: ResolverOptions;
  readonly #clock: Clock;
  readonly #files: MachineFiles;
  readonly #cache: AnswerCache;
  readonly #slots: QuerySlots;
  /** Questions in progress. */
  readonly #asking = new Map<string, Promise<readonly RecordData[RecordType][]>>();
  #config: ResolverConfig | undefined;

  constructor(options: ResolverOptions = {}) {
    const { clock = systemClock, resolvConf = '/etc/resolv.conf', hosts = '/etc/hosts' } = options;
    this.#options = options;
    this.#clock = clock;
    this.#files = new MachineFiles({ resolvConf, hosts, clock });
    this.#cache = new AnswerCache(clock);
    this.#slots = new QuerySlots(clock);
  }

  /**
   * Returns the addresses of a host, IPv4 first; at least one.
   * @throws ResolveError
   */
  async addresses(host: string, options: AddressOptions = {}): Promise<string[]> {
    const { family } = options;
    const found = await this.#find(host, options);
    const wanted = family === undefined ? found : found.filter((address) => isIP(address) === family);
    if (wanted.length > 0) return wanted;
    throw new ResolveError('NOT_FOUND', `${host} has no ${family === undefined ? '' : `IPv${family} `}address`);
  }

  async #find(host: string, options: AddressOptions): Promise<string[]> {
    if (isIP(host) !== 0) return [host];
    const name = hostName(host);
    const { config, hosts } = this.#files.read();
    const bare = withoutDot(name);
    const listed = hosts.get(bare);
    if (listed !== undefined) return [...listed];
    // RFC 6761 section 6.3: never asked of a name server.
    if (bare === 'localhost' || bare.endsWith('.localhost')) return ['127.0.0.1', '::1'];
    let refusal: RefusedError | undefined;
    for (const candidate of candidateNames(name, config)) {
      const found = await this.#candidate(candidate, config, options).catch((error: unknown) => {
        // The zone of one search domain is broken, or the servers refuse us. Silence says nothing, so it ends the
        // search.
        if (!(error instanceof RefusedError)) throw error;
        refusal ??= error;

        return [];
      });
      if (found.length > 0) return found;
    }
    const own = bare === hostname().toLowerCase() ? ownAddresses() : [];
    if (own.length === 0 && refusal !== undefined) throw refusal;

    return own;
  }

  /**
   * Returns the records of a fully qualified name: neither the hosts file nor the search list applies.
   * @throws ResolveError FAILED
   */
  async records<T extends 'SRV' | 'NAPTR'>(type: T, name: string): Promise<readonly RecordData[T][]> {
    const { config } = this.#files.read();
    const values = await this.#ask({ type, name: withoutDot(hostName(name)) }, config);

    return values as readonly RecordData[T][];
  }

  /** `lookup` of `net.connect`, `http.request` and others; addresses in the order of RFC 8305. */
  readonly lookup: LookupFunction = (host, { family, all }, callback) => {
    const wanted = family === 'IPv4' || family === 4 ? 4 : family === 'IPv6' || family === 6 ? 6 : undefined;
    this.addresses(host, { family: wanted }).then(
      (addresses) => {
        const found = inRacingOrder(addresses).map((address) => ({ address, family: isIP(address) }));
        if (all === true) callback(null, found);
        else callback(null, found[0]!.address, found[0]!.family);
      },
      (error: ResolveError) => callback(lookupError(host, error), ''),
    );
  };

  async #candidate(name: string, config: ResolverConfig, options: AddressOptions): Promise<string[]> {
    const { family, isFresh } = options;
    if (family === undefined) return await this.#bothFamilies(name, config, options);

    return [...(await this.#ask({ name, type: family === 4 ? 'A' : 'AAAA' }, config, isFresh))] as string[];
  }

  /** Queries both families at the same time. A name without one family is complete with the other. */
  async #bothFamilies(name: string, config: ResolverConfig, { isFresh }: AddressOptions): Promise<string[]> {
    const asked = (['A', 'AAAA'] as const).map((type) => this.#ask({ name, type }, config, isFresh));
    const [first, second] = [asked, asked.toReversed()].map(async ([one, other]) => {
      const found = (await one) as string[];
      if (found.length === 0) throw new ResolveError('NOT_FOUND', `${name} has no address of this family`);
      const timeoutMs = isFresh === true ? COMPLETE_MS : SECOND_FAMILY_MS;
      const late = (): string[] => [];
      const rest = inTime(other as Promise<string[]>, { timeoutMs, late, clock: this.#clock }).catch(late);

      return [...found, ...(await rest)].toSorted((a, b) => isIP(a) - isIP(b));
    });
    return await Promise.any([first!, second!]).catch(async () => {
      // Neither family has addresses: throw FAILED unless that is certain.
      const failures = (await Promise.allSettled(asked)).filter((one) => one.status === 'rejected');
      const errors = failures.map((one) => one.reason as ResolveError);
      const worst = errors.find((error) => !(error instanceof RefusedError)) ?? errors[0];
      if (worst !== undefined) throw worst;

      return [];
    });
  }

  async #ask(question: Question, config: ResolverConfig, isFresh = false): Promise<readonly RecordData[RecordType][]> {
    if (this.#config !== config) {
      // Other name servers may know other names.
      this.#cache.clear();
      this.#asking.clear();
      this.#config = config;
    }
    const key = `${question.type} ${question.name}`;
    const known = isFresh ? undefined : this.#cache.get(key);
    if (known !== undefined) return known;
    const running = this.#asking.get(key);
    if (running !== undefined) return await running;
    const asking = this.#exchange(question, config, key);
    this.#asking.set(key, asking);
    try {
      return await asking;
    } finally {
      if (this.#asking.get(key) === asking) this.#asking.delete(key);
    }
  }

  async #exchange(question: Question, config: ResolverConfig, key: string): Promise<readonly RecordData[RecordType][]> {
    const { port = 53, timeoutMs = config.timeoutMs } = this.#options;
    const clock = this.#clock;
    const records = await this.#slots.run(
      (signal) => exchange(question, { ...config, timeoutMs, port, clock, signal }),
      { isUrgent: this.#cache.knows(key), graceMs: graceMs(config) },
    );
    if (this.#config === config) this.#cache.set(key, records);

    return records.values;
  }
}

/** The part of a resolver that lookups need. */
export type Names = Pick<Resolver, keyof Resolver>;

let shared: Resolver | undefined;

/** Returns the resolver of this thread, which shares its answers. */
export function systemResolver(): Resolver {
  shared ??= new Resolver();

  return shared;
}

/** Returns the name in lower case and ASCII. @throws ResolveError NOT_FOUND for text that cannot be a name */
function hostName(host: string): string {
  const name = (/^[!-~]*$/.test(host) ? host : domainToASCII(host)).toLowerCase();
  const labels = withoutDot(name).split('.');
  const isName = name.length <= MAX_NAME && labels.every((label) => label.length > 0 && label.length <= MAX_LABEL);
  if (!isName) throw new ResolveError('NOT_FOUND', `${JSON.stringify(host.slice(0, MAX_NAME))} is not a host name`);

  return name;
}

function withoutDot(name: string): string {
  return name.endsWith('.') ? name.slice(0, -1) : name;
}

/** Returns the addresses of this machine, IPv4 first. A link-local one is useless without its interface. */
function ownAddresses(): string[] {
  return Object.values(networkInterfaces())
    .flatMap((addresses = []) => addresses)
    .filter(({ internal, address }) => !internal && !/^fe[89ab]/i.test(address))
    .map(({ address }) => address)
    .toSorted((a, b) => isIP(a) - isIP(b));
}

/** Returns the error with the code that callers of `dns.lookup` expect. */
function lookupError(hostname: string, cause: ResolveError): NodeJS.ErrnoException {
  const code = cause.code === 'NOT_FOUND' ? 'ENOTFOUND' : 'EAI_AGAIN';

  return Object.assign(new Error(cause.message, { cause }), { code, hostname, syscall: 'lookup' });
}
