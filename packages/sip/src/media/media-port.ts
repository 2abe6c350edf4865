import type { Socket } from 'node:dgram';
import { createSocket } from 'node:dgram';
import { isIP } from 'node:net';
import { type Clock, Timer } from '@bloom/time';
import type { Randomness } from '../randomness.js';
import type { CodecName } from './codecs.js';
import { FramePacer } from './frame-pacer.js';
import type { NegotiatedAudio } from './negotiation.js';
import { RtpSession, type RtpStats } from './rtp-session.js';

/** Audio of a call in the call's codec. */
export interface CallAudio {
  /**
   * Called every 20 ms while audio can arrive; undefined for a missing frame. A G.711 frame has 20 ms. Opus packets
   * vary in length, so they can come less often or several at a time.
   */
  received?: (frame: Buffer | undefined, codec: CodecName) => void;
  /** Called every 20 ms while audio can be sent; undefined means silence. */
  next?: (codec: CodecName) => Buffer | undefined;
}

/** Sends and receives the audio of one call. */
export interface CallMedia {
  /** Advertised UDP port. */
  readonly port: number;
  /** Starts sending and playing, or changes how. */
  configure(agreed: NegotiatedAudio): void;
  stats(): RtpStats;
  /** Returns the milliseconds since the last packet, RTCP included; undefined before the first. */
  quietFor(): number | undefined;
  /** Idempotent. */
  close(): Promise<void>;
}

export interface MediaAddresses {
  /** Advertised address. */
  address: string;
  bindAddress: string;
  /** Called when a key is pressed on the other side. */
  onDigit: (digit: string) => void;
}

/** Opens the audio of one call, for example in another process. Rejects when that fails. */
export type OpenMedia = (addresses: MediaAddresses) => Promise<CallMedia>;

export interface MediaPortOptions extends MediaAddresses {
  clock: Clock;
  randomness: Randomness;
  audio: CallAudio;
}

/** The RTP socket of one call and its 20 ms clock. */
export class MediaPort implements CallMedia {
  readonly port: number;
  readonly #options: MediaPortOptions;
  readonly #socket: Socket;
  /** The port above the RTP port, to which phones send RTCP (RFC 3550 section 11); undefined if it was taken. */
  readonly #control: Socket | undefined;
  readonly #session: RtpSession;
  readonly #timer: Timer;
  readonly #pacer = new FramePacer();
  #closed = false;

  private constructor(options: MediaPortOptions, socket: Socket, control: Socket | undefined) {
    this.#options = options;
    this.#socket = socket;
    this.#control = control;
    this.port = socket.address().port;
    this.#timer = new Timer(options.clock);
    this.#session = new RtpSession({ randomness: options.randomness, onDigit: options.onDigit });
    for (const each of [socket, control]) {
      each?.on('error', () => {});
      each?.on('message', (data, from) => this.#session.receive(data, from, options.clock.now()));
    }
  }

  /** @throws the system's error when the address is not local. */
  static async open(options: MediaPortOptions): Promise<MediaPort> {
    const socket = await bind(0, options.bindAddress);
    const control = await bind(socket.address().port + 1, options.bindAddress).catch(() => undefined);
    return new MediaPort(options, socket, control);
  }

  configure(agreed: NegotiatedAudio): void {
    this.#session.configure(agreed);
    if (!this.#timer.running && !this.#closed) this.#tick();
  }

  stats(): RtpStats {
    return this.#session.stats();
  }

  quietFor(): number | undefined {
    const { aliveAt } = this.#session;
    return aliveAt === undefined ? undefined : this.#options.clock.now() - aliveAt;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#timer.stop();
    this.#control?.close();
    await new Promise<void>((done) => this.#socket.close(() => done()));
  }

  #tick(): void {
    const { clock, audio } = this.#options;
    for (let due = this.#pacer.due(clock.now()); due > 0 && !this.#closed; due -= 1) {
      const { agreed } = this.#session;
      if (agreed === undefined) break;
      const { name } = agreed.codec;
      for (const frame of this.#session.play()) audio.received?.(frame, this.#session.heardCodec ?? name);
      const sending = agreed.direction === 'sendrecv' || agreed.direction === 'sendonly';
      const packed = this.#session.pack(sending ? audio.next?.(name) : undefined);
      if (packed !== undefined) this.#socket.send(packed.packet, packed.to.port, packed.to.address);
    }
    if (!this.#closed) this.#timer.start(this.#pacer.wait(clock.now()), () => this.#tick());
  }
}

async function bind(port: number, address: string): Promise<Socket> {
  const family = isIP(address) === 6 ? 6 : 4;
  // Addresses are always IP addresses, so skip the lookup, fifty times a second.
  const socket = createSocket({ type: `udp${family}`, lookup: (host, _, done) => done(null, host, family) });
  try {
    if (port > 65_535) throw new RangeError(`there is no port ${port}`);
    await new Promise<void>((done, failed) => {
      socket.once('error', failed);
      socket.bind(port, address, done);
    });
  } catch (error) {
    socket.close();
    throw error;
  }
  socket.removeAllListeners('error');
  return socket;
}
