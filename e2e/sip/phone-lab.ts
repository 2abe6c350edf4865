/** A provider and its phones on separate hosts, and a node whose rooms call them. */
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BloomClient, type Component, type Notification } from '@bloom/server-sdk';
import { apiToken, type BloomNode, startNode } from '../harness/bloom-node.js';
import { type Host, Lab } from '../hosts/lab.js';
import { password, type Program, startBaresip, startKamailio, startSipp } from './programs.js';

export async function until(what: string, condition: () => boolean, timeoutMs = 10_000): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`waited in vain: ${what}`);
    await new Promise((wait) => setTimeout(wait, 20));
  }
}

interface Machines {
  proxy: Host;
  desk: Host;
  trunk: Host;
  kamailio: Program;
}

/** Kamailio as the provider, a desk with baresip, and a trunk where sipp plays the unregistered phones. */
export class PhoneLab {
  readonly proxy: Host;
  readonly desk: Host;
  readonly trunk: Host;
  kamailio: Program;
  readonly #programs: Program[] = [];
  #runs = 0;

  private constructor(
    readonly lab: Lab,
    readonly folder: string,
    { proxy, desk, trunk, kamailio }: Machines,
  ) {
    this.proxy = proxy;
    this.desk = desk;
    this.trunk = trunk;
    this.kamailio = kamailio;
  }

  static async open(): Promise<PhoneLab> {
    const folder = mkdtempSync(join(tmpdir(), 'bloom-calls-'));
    const lab = await Lab.open();
    const [proxy, desk, trunk] = [
      lab.addHost('pbx.lab.test'),
      lab.addHost('desk.lab.test'),
      lab.addHost('trunk.lab.test'),
    ];
    const kamailio = await startKamailio(proxy, folder, trunk.address);
    return new PhoneLab(lab, folder, { proxy, desk, trunk, kamailio });
  }

  /** Settings of a node that the phones can reach. */
  get nodeEnv(): Record<string, string> {
    return { JF_SIP_USED: 'true', JF_SIP_IP: this.lab.ownAddress };
  }

  async restartRegistrar(): Promise<void> {
    await this.kamailio.stop();
    this.kamailio = await startKamailio(this.proxy, this.folder, this.trunk.address);
  }

  async sipp(scenario: string, calls = 1): Promise<Program> {
    this.#runs += 1;
    const program = await startSipp(this.trunk, join(this.folder, `sipp-${this.#runs}`), { scenario, calls });
    this.#programs.push(program);
    return program;
  }

  /** Starts a phone that answers as `user` and plays a WAV file; `heard` reads its recording after it has stopped. */
  async baresip(user: string, play: string, codec?: 'opus'): Promise<{ program: Program; recording: () => string }> {
    this.#runs += 1;
    const home = join(this.folder, `baresip-${this.#runs}`);
    const registrar = this.proxy.address;
    const program = await startBaresip(this.desk, home, { user, registrar, play, ...(codec ? { codec } : {}) });
    this.#programs.push(program);
    const recording = () => join(home, readdirSync(home).find((name) => name.endsWith('-dec.wav')) ?? 'no recording');
    return { program, recording };
  }

  /** Ends the phones. */
  async clear(): Promise<void> {
    await Promise.all(this.#programs.splice(0).map((program) => program.stop()));
  }

  async close(): Promise<void> {
    await this.clear();
    await this.kamailio.stop();
    await this.lab.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export interface LogLine {
  /** ISO 8601 */
  time: string;
  message: string;
  metadata: Record<string, unknown>;
}

/** Rooms of one node, with its notifications and log. */
export class Rooms {
  readonly sdk: BloomClient;
  readonly events: Notification[] = [];
  readonly #ending = new AbortController();
  readonly #rooms = new Set<string>();

  constructor(readonly node: BloomNode) {
    this.sdk = new BloomClient({ url: node.url, token: apiToken });
  }

  static async start(env: Record<string, string>): Promise<Rooms> {
    const rooms = new Rooms(await startNode({ env: { JF_STRUCTURED_LOGGING: 'true', ...env } }));
    await rooms.listen();
    return rooms;
  }

  async listen(): Promise<void> {
    await new Promise<void>((subscribed, failed) => {
      const stream = this.sdk.notifications({ signal: this.#ending.signal, onSubscribed: subscribed });
      const take = async () => {
        for await (const event of stream) this.events.push(event);
      };
      take().catch(failed);
    });
  }

  async room(): Promise<string> {
    const { room } = await this.sdk.createRoom();
    this.#rooms.add(room.id);
    return room.id;
  }

  phone(room: string, address: string, secret = password): Promise<Component> {
    return this.sdk.addComponent(room, 'sip', {
      registrarCredentials: { address, username: 'room', password: secret },
    });
  }

  /** Returns the types of notifications about a component. */
  of(componentId: string): string[] {
    return this.events.filter((event) => JSON.stringify(event).includes(componentId)).map((event) => event.type);
  }

  log(componentId: string): LogLine[] {
    return this.node
      .log()
      .split('\n')
      .filter((line) => line.includes(componentId) && line.startsWith('{'))
      .map((line) => JSON.parse(line) as LogLine);
  }

  /** Waits for a log line with that message. Resolves with the fields of the last one. */
  async logs(componentId: string, message: string, timeoutMs?: number): Promise<Record<string, unknown>> {
    const found = () => this.log(componentId).findLast((line) => line.message === message);
    await until(`${message} of ${componentId}`, () => found() !== undefined, timeoutMs);
    return (found() as LogLine).metadata;
  }

  async tells(componentId: string, type: Notification['type'], timeoutMs?: number): Promise<void> {
    await until(`${type} of ${componentId}`, () => this.of(componentId).includes(type), timeoutMs);
  }

  /** Cleans up after a test. */
  async clear(): Promise<void> {
    for (const id of this.#rooms) await this.sdk.deleteRoom(id).catch(() => {});
    this.#rooms.clear();
  }

  /** Stops listening. */
  end(): void {
    this.#ending.abort();
  }

  async stop(): Promise<void> {
    this.end();
    await this.node.stop();
  }
}

/** Returns the CPU seconds that a process has used so far. */
export function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}
