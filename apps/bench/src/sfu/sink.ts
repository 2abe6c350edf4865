import type { ChildProcess } from 'node:child_process';
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { decrypt, negotiatedBy, remoteOf, stampOf, transportOf } from '@bloom/participant';
import { RtcpWriter, TransportCcRecorder } from '@bloom/rtp';
import type { RTCPeerConnection } from 'werift';
import { sendRtcp, stopReading } from './client.js';

const native = join(dirname(fileURLToPath(import.meta.url)), '..', '..', 'native');
const folder = mkdtempSync(join(tmpdir(), 'bloom-bench-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
const built = new Map<string, string>();

/** Compiles `apps/bench/native/<name>.c` once per run. */
export function buildNative(name: string, ...flags: string[]): string {
  const known = built.get(name);
  if (known) return known;
  const output = join(folder, name);
  execFileSync('gcc', ['-O2', '-o', output, join(native, `${name}.c`), ...flags], { stdio: 'inherit' });
  built.set(name, output);
  return output;
}

/** Number of a socket's RTP packets that pass between two samples decrypted here. */
const sample = 50;
/** Length of the socket index and receive time before each datagram that the sink passes on. */
const headBytes = 12;

/** Length of a report's header, and of each arrival in it. */
const arrivalsHeadBytes = 8;
const arrivalBytes = 16;
const feedbackSsrc = 1;

/** Counts subscribers' packets in a C program, checks a sample here, and sends everyone's transport-wide feedback. */
export class Sink {
  /** Deliveries: each of the publisher's packets counts once, however many copies arrive. */
  packets = 0;
  bytes = 0;
  /** Packets that arrived as a retransmission. */
  repairs = 0;
  /** Copies of a delivered packet, and padding. */
  others = 0;
  invalid = 0;
  /** Microseconds from the publisher's stamp to the kernel's receive stamp, for the sampled packets. */
  latencies: number[] = [];
  readonly #child: ChildProcess;
  readonly #receivers: RTCPeerConnection[];
  readonly #recorders: TransportCcRecorder[];
  readonly #writer = new RtcpWriter();
  #pending = Buffer.alloc(0);

  constructor(receivers: RTCPeerConnection[]) {
    this.#receivers = receivers;
    const handles = receivers.map((pc) => stopReading(pc));
    this.#recorders = receivers.map(() => new TransportCcRecorder({ senderSsrc: feedbackSsrc }));
    const negotiated = receivers.map((pc) => negotiatedBy(pc));
    const pairs = negotiated.flatMap(({ rtxPayloadType, transportCcId }) => [rtxPayloadType, transportCcId]);
    const args = [3, handles.length, sample, ...pairs];
    this.#child = spawn(buildNative('sink'), args.map(String), {
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
      this.repairs = Number(body.readBigUInt64LE(16));
      this.others = Number(body.readBigUInt64LE(24));
      return;
    }
    if (type === 3) {
      this.#sendFeedback(body);
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

  /** Reports the arrivals of one socket to the server. */
  #sendFeedback(arrivals: Buffer): void {
    const index = arrivals.readUInt32LE(0);
    const [pc, recorder] = [this.#receivers[index], this.#recorders[index]];
    if (pc === undefined || recorder === undefined) return;
    let receivedMs = 0;
    for (let at = arrivalsHeadBytes; at + arrivalBytes <= arrivals.length; at += arrivalBytes) {
      receivedMs = Number(arrivals.readBigUInt64LE(at)) / 1000;
      recorder.record(Number(arrivals.readBigUInt64LE(at + 8)), receivedMs);
    }
    while (recorder.write(this.#writer.reset(), arrivals.readUInt32LE(4), receivedMs)) {
      sendRtcp(pc, Buffer.from(this.#writer.bytes()));
    }
  }
}
