import type { ChildProcess } from 'node:child_process';
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { RTCPeerConnection } from 'werift';
import { decrypt, remoteOf, stampOf, transportOf } from './client.js';

const native = join(dirname(fileURLToPath(import.meta.url)), '..', '..', 'native');
const folder = mkdtempSync(join(tmpdir(), 'bloom-bench-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
const built = new Map<string, string>();

/** Compiles `bench/native/<name>.c` once per run. */
export function buildNative(name: string, ...flags: string[]): string {
  const known = built.get(name);
  if (known) return known;
  const output = join(folder, name);
  execFileSync('gcc', ['-O2', '-o', output, join(native, `${name}.c`), ...flags], { stdio: 'inherit' });
  built.set(name, output);
  return output;
}

/** How many RTP packets of one socket pass unsampled between two that are decrypted here. */
const sample = 50;
/** Socket index and receive time before each datagram that the sink passes on. */
const headBytes = 12;

/** Counts packets at subscribers in a C program, and checks a sample of them here. */
export class Sink {
  packets = 0;
  bytes = 0;
  invalid = 0;
  /** Microseconds from the publisher's stamp to the kernel's receive stamp, of the sampled packets. */
  latencies: number[] = [];
  readonly #child: ChildProcess;
  readonly #receivers: RTCPeerConnection[];
  #pending = Buffer.alloc(0);

  constructor(receivers: RTCPeerConnection[]) {
    this.#receivers = receivers;
    const handles = receivers.map((pc) => {
      const { socket } = transportOf(pc);
      // Internal, but there is no public way to stop reading without closing.
      const handle = (socket as unknown as { _handle: { fd: number; recvStop(): void } })._handle;
      handle.recvStop();
      return handle.fd;
    });
    this.#child = spawn(buildNative('sink'), ['3', String(handles.length), String(sample)], {
      stdio: ['pipe', 'pipe', 'inherit', ...handles],
    });
    this.#child.stdout?.on('data', (data: Buffer) => this.#read(data));
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  reset(): void {
    this.latencies = [];
  }

  async close(): Promise<void> {
    const ended = new Promise((done) => this.#child.once('exit', done));
    this.#child.stdin?.end();
    await ended;
  }

  #read(data: Buffer): void {
    let rest = this.#pending.length > 0 ? Buffer.concat([this.#pending, data]) : data;
    while (rest.length >= 5) {
      const end = 5 + rest.readUInt32LE(1);
      if (rest.length < end) break;
      this.#frame(rest[0] as number, rest.subarray(5, end));
      rest = rest.subarray(end);
    }
    this.#pending = Buffer.from(rest);
  }

  #frame(type: number, body: Buffer): void {
    if (type === 2) {
      this.packets = Number(body.readBigUInt64LE(0));
      this.bytes = Number(body.readBigUInt64LE(8));
      return;
    }
    const pc = this.#receivers[body.readUInt32LE(0)];
    if (!pc) return;
    const datagram = Buffer.from(body.subarray(headBytes));
    const first = datagram[0] ?? 0;
    const second = datagram[1] ?? 0;
    if (first >= 128 && first <= 191 && !(second >= 192 && second <= 223)) {
      try {
        const { payload } = decrypt(pc, datagram);
        // Padding has no stamp.
        if (payload.length > 16) this.latencies.push(Number(body.readBigUInt64LE(4)) - stampOf(payload));
      } catch {
        this.invalid += 1;
      }
      return;
    }
    // STUN, DTLS and RTCP go to werift.
    transportOf(pc).onData(datagram, remoteOf(pc));
  }
}
