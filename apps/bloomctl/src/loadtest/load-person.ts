import { type Arrivals, openConnection, FastMedia, FastSource, signal } from '@bloom/participant';
import WebSocket from 'ws';
import { EXIT, Failure } from '../exit.js';
import type { Seat } from '../outside/seats.js';

/** Payload type of VP8 in the offers of participants. */
const PAYLOAD_TYPE = 96;
/** One of this many packets is decrypted: enough to prove that all are valid, at little cost. */
const SAMPLE_EVERY = 20;
/** Limit of a join, ms. */
const JOIN_MS = 20_000;

export interface LoadPersonOptions {
  readonly kbps: number;
  readonly publishes: boolean;
  /** True if the server's address is on this machine. */
  readonly isLocal: boolean;
}

/** One person of a load test, with real ICE, DTLS and SRTP. */
export class LoadPerson {
  readonly #seat: Seat;
  readonly #pc: ReturnType<typeof openConnection>;
  readonly #source: FastSource | undefined;
  #socket: WebSocket | undefined;
  #media: FastMedia | undefined;

  constructor(seat: Seat, { kbps, publishes, isLocal }: LoadPersonOptions) {
    this.#seat = seat;
    this.#pc = openConnection({
      iceUseIpv6: true,
      ...(isLocal ? { iceAdditionalHostAddresses: ['127.0.0.1'] } : {}),
    });
    this.#source = publishes ? new FastSource({ payloadType: PAYLOAD_TYPE, bitrateBps: kbps * 1_000 }) : undefined;
  }

  get publishes(): boolean {
    return this.#source !== undefined;
  }

  /** Packets sent so far. */
  get sent(): number {
    return this.#source?.sent ?? 0;
  }

  /** Resolves when media flows. @throws Failure */
  async join(): Promise<void> {
    const { url, token } = this.#seat;
    const socket = new WebSocket(url, { handshakeTimeout: JOIN_MS, maxRedirects: 0 });
    this.#socket = socket;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no media within ${JOIN_MS / 1_000} s`)), JOIN_MS);
    });
    try {
      await Promise.race([signal(this.#pc, socket, { token, publisher: this.#source }), late]);
    } catch (error) {
      throw new Failure(EXIT.unreachable, `a person cannot join: ${(error as Error).message}`, {
        advice: 'bloomctl try says which step fails',
      });
    } finally {
      clearTimeout(timer);
    }
    this.#media = new FastMedia(this.#pc, { payloadType: PAYLOAD_TYPE, sampleEvery: SAMPLE_EVERY });
    this.#source?.start(this.#media, performance.now());
  }

  /** Sends the pictures that are due. */
  tick(nowMs: number): void {
    this.#source?.tick(nowMs);
  }

  sendFeedback(nowMs: number): void {
    this.#media?.sendFeedback(nowMs);
  }

  takeArrivals(): Arrivals | undefined {
    return this.#media?.takeArrivals();
  }

  async close(): Promise<void> {
    this.#source?.stop();
    this.#socket?.terminate();
    await this.#pc.close();
  }
}
