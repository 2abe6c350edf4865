import { networkInterfaces } from 'node:os';
import { isIPv6 } from 'node:net';
import { COMPONENT_SCHEMAS, type ComponentHost, type ComponentKind, parseOptions, RoomError } from '@bloom/rooms';
import type { Processes } from '@bloom/processes';
import { checkCredentials, parseRegistrar, type RegistrarCredentials } from '@bloom/sip';
import { awakeClock } from '@bloom/time';
import { PhoneProcesses } from './phone-processes.js';
import { SipComponent, type SipInspection } from './sip-component.js';

export interface SipServiceOptions {
  processes: Processes;
  /** `JF_SIP_IP`: the address at which providers and phones reach this node. */
  address: string;
  /** Addresses of this machine; defaults to those of its network interfaces. */
  ownAddresses?: () => string[];
  /** Built entry of a call's process; defaults to the one beside this file. */
  entry?: URL;
  /** A process of calls that sends nothing for this many ms is killed. */
  hangMs?: number;
  /** Up to this many calls, each has a process to itself; beyond that, calls share processes. Default 4. */
  mostProcesses?: number;
}

const DEFAULT_HANG_MS = 5000;
const DEFAULT_PROCESSES = 4;

/** This node's SIP components. */
export class SipService {
  readonly kind: ComponentKind;
  readonly #options: SipServiceOptions;
  readonly #processes: PhoneProcesses;
  readonly #components = new Map<string, SipComponent>();
  readonly #closing = new Set<Promise<void>>();

  constructor(options: SipServiceOptions) {
    this.#options = options;
    this.#processes = new PhoneProcesses({
      processes: options.processes,
      entry: options.entry ?? new URL('./engine/phone-main.js', import.meta.url),
      hangMs: options.hangMs ?? DEFAULT_HANG_MS,
      most: options.mostProcesses ?? DEFAULT_PROCESSES,
    });
    this.kind = {
      type: 'sip',
      limitPerRoom: null,
      prepare: async (given) => {
        const { address, username, password } = parseOptions(COMPONENT_SCHEMAS.sip.options, given).registrarCredentials;
        const credentials = { address, username, password };
        check(credentials);

        return {
          properties: { registrarCredentials: credentials },
          // A phone hears every track of the room, so there is nothing to choose.
          subscribeMode: 'auto',
          start: (host) => this.#start(host, credentials),
        };
      },
    };
  }

  /** Returns the state of a running component; undefined when none has that id. */
  inspect(componentId: string): SipInspection | undefined {
    return this.#components.get(componentId)?.inspect();
  }

  /** Resolves when every closed component has hung up and unregistered, or timed out. */
  async settled(): Promise<void> {
    while (this.#closing.size > 0) await Promise.all(this.#closing);
  }

  #start(host: ComponentHost, credentials: RegistrarCredentials): SipComponent {
    const { address } = this.#options;
    const { componentId } = host;
    const component = new SipComponent({
      host,
      credentials,
      address,
      bindAddress: this.#bindAddress(),
      processes: this.#processes,
      clock: awakeClock,
      onClosing: (closed) => {
        this.#components.delete(componentId);
        this.#closing.add(closed);
        void closed.finally(() => this.#closing.delete(closed));
      },
    });
    this.#components.set(componentId, component);

    return component;
  }

  /** The advertised address may belong to a router in front of this machine. */
  #bindAddress(): string {
    const { address, ownAddresses = addressesOfThisMachine } = this.#options;
    if (ownAddresses().includes(address)) return address;

    return isIPv6(address) ? '::' : '0.0.0.0';
  }
}

function check(credentials: RegistrarCredentials): void {
  try {
    parseRegistrar(credentials.address);
    checkCredentials(credentials);
  } catch (error) {
    throw new RoomError('INVALID_OPTIONS', 'Invalid request body structure', { cause: error });
  }
}

function addressesOfThisMachine(): string[] {
  return Object.values(networkInterfaces()).flatMap((own) => (own ?? []).map(({ address }) => address));
}
