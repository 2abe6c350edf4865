import { networkInterfaces } from 'node:os';
import { isIPv6 } from 'node:net';
import { type ComponentHost, type ComponentKind, parseOptions, RoomError, SipOptions } from '@bloom/rooms';
import { checkCredentials, parseRegistrar, type RegistrarCredentials } from '@bloom/sip';
import { type Clock, systemClock } from '@bloom/time';
import { PhoneProcesses } from './phone-processes.js';
import { SipComponent, type SipInspection } from './sip-component.js';

export interface SipServiceOptions {
  /** `JF_SIP_IP`: where providers and phones reach this node. */
  address: string;
  /** Addresses of this machine; default: those of its network interfaces. */
  ownAddresses?: () => string[];
  /** The built entry of a call's process; default: beside this file. */
  entry?: URL;
  /** Milliseconds without a sign of life after which a call's process is given up. */
  hangMs?: number;
  /** Calls have processes of their own up to that many, and share them beyond; default 4. */
  mostProcesses?: number;
  clock?: Clock;
}

const DEFAULT_HANG_MS = 5000;
const DEFAULT_PROCESSES = 4;

/** The SIP components of this node. */
export class SipService {
  readonly kind: ComponentKind;
  readonly #options: SipServiceOptions;
  readonly #processes: PhoneProcesses;
  readonly #components = new Map<string, SipComponent>();
  readonly #closing = new Set<Promise<void>>();

  constructor(options: SipServiceOptions) {
    this.#options = options;
    this.#processes = new PhoneProcesses({
      entry: options.entry ?? new URL('./engine/phone-main.js', import.meta.url),
      hangMs: options.hangMs ?? DEFAULT_HANG_MS,
      most: options.mostProcesses ?? DEFAULT_PROCESSES,
    });
    this.kind = {
      type: 'sip',
      requiresH264: false,
      limitPerRoom: null,
      prepare: async (given) => {
        const { address, username, password } = parseOptions(SipOptions, given).registrarCredentials;
        const credentials = { address, username, password };
        check(credentials);

        return {
          properties: { registrarCredentials: credentials },
          // Always everybody: there is nothing to choose.
          subscribeMode: 'auto',
          start: (host) => this.#start(host, credentials),
        };
      },
    };
  }

  /** What a look into a running component shows; undefined: there is none of that id. */
  inspect(componentId: string): SipInspection | undefined {
    return this.#components.get(componentId)?.inspect();
  }

  /** Every component that was closed has hung up and taken its registration back, or waited long enough for it. */
  async settled(): Promise<void> {
    while (this.#closing.size > 0) await Promise.all(this.#closing);
  }

  #start(host: ComponentHost, credentials: RegistrarCredentials): SipComponent {
    const { address, clock = systemClock } = this.#options;
    const { componentId } = host;
    const component = new SipComponent({
      host,
      credentials,
      address,
      bindAddress: this.#bindAddress(),
      processes: this.#processes,
      clock,
      onClosing: (closed) => {
        this.#components.delete(componentId);
        this.#closing.add(closed);
        void closed.finally(() => this.#closing.delete(closed));
      },
    });
    this.#components.set(componentId, component);

    return component;
  }

  /** The address that others are told may be that of a router in front of this machine. */
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
