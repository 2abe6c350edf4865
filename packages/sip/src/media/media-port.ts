import type { Socket } from 'node:dgram';
import { createSocket } from 'node:dgram';
import { isIP } from 'node:net';
import { type Clock, Timer } from '@bloom/time';
import type { Randomness } from '../randomness.js';
import type { CodecName } from './codecs.js';
import { FramePacer } from './frame-pacer.js';
import type { NegotiatedAudio } from './negotiation.js';
import { RtpSession, type RtpStats } from './rtp-session.js';

/** The sound of a call in its codec. */
export interface CallAudio {
  /**
   * Called every 20 ms while sound can come; undefined: nothing came for this moment. A frame of G.711 is 20 ms long; packets
   * of Opus are as long as they say, so that one can come less often, or several at a time.
   */
  received?: (frame: Buffer | undefined, codec: CodecName) => void;
  /** Asked every 20 ms while sound can go; undefined is silence. */
  next?: (codec: CodecName) => Buffer | undefined;
}

/** Where the sound of one call comes in and goes out. */
export interface CallMedia {
  /** UDP port that the other side is told. */
  readonly port: number;
  /** Begins to send and to play, or goes on in another way. */
  configure(agreed: NegotiatedAudio): void;
  stats(): RtpStats;
  /** Milliseconds since the last packet came; undefined when none did. */
  quietFor(): number | undefined;
  /** Idempotent. */
  close(): Promise<void>;
}

export interface MediaAddresses {
  /** That the other side is told. */
  address: string;
  bindAddress: string;
  /** A key was pressed at the other end. */
  onDigit: (digit: string) => void;
}

/** Opens the sound of one call wherever it is dealt with, in another process for example. Rejects when it cannot. */
export type OpenMedia = (addresses: MediaAddresses) => Promise<CallMedia>;

export interface MediaPortOptions extends MediaAddresses {
  clock: Clock;
  randomness: Randomness;
  audio: CallAudio;
}

/** The RTP socket of one call and its clockwork. */
export class MediaPort implements CallMedia {
  readonly port: number;
  readonly #options: MediaPortOptions;
  readonly #socket: Socket;
  readonly #session: RtpSession;
  readonly #timer: Timer;
  readonly #pacer = new FramePacer();
  #closed = false;

  private constructor(options: MediaPortOptions, socket: Socket) {
    this.#options = options;
    this.#socket = socket;
    this.port = socket.address().port;
    this.#timer = new Timer(options.clock);
    this.#session = new RtpSession({ randomness: options.randomness, onDigit: options.onDigit });
    socket.on('error', () => {});
    socket.on('message', (data, from) => this.#session.receive(data, from, options.clock.now()));
  }

  /** @throws the system's error when the address is not ours. */
  static async open(options: MediaPortOptions): Promise<MediaPort> {
    const family = isIP(options.bindAddress) === 6 ? 6 : 4;
    // Only ever IP addresses: nothing to look up, fifty times a second.
    const socket = createSocket({ type: `udp${family}`, lookup: (address, _, done) => done(null, address, family) });
    await new Promise<void>((done, failed) => {
      socket.once('error', failed);
      socket.bind(0, options.bindAddress, done);
    });
    socket.removeAllListeners('error');
    return new MediaPort(options, socket);
  }

  configure(agreed: NegotiatedAudio): void {
    this.#session.configure(agreed);
    if (!this.#timer.running && !this.#closed) this.#tick();
  }

  stats(): RtpStats {
    return this.#session.stats();
  }

  quietFor(): number | undefined {
    const heardAt = this.#session.heardAt;
    return heardAt === undefined ? undefined : this.#options.clock.now() - heardAt;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#timer.stop();
    await new Promise<void>((done) => this.#socket.close(() => done()));
  }

  #tick(): void {
    const { clock, audio } = this.#options;
    for (let due = this.#pacer.due(clock.now()); due > 0 && !this.#closed; due -= 1) {
      const { agreed } = this.#session;
      if (!agreed) break;
      const { name } = agreed.codec;
      for (const frame of this.#session.play()) audio.received?.(frame, this.#session.heardCodec ?? name);
      const sending = agreed.direction === 'sendrecv' || agreed.direction === 'sendonly';
      const packed = this.#session.pack(sending ? audio.next?.(name) : undefined);
      if (packed) this.#socket.send(packed.packet, packed.to.port, packed.to.address);
    }
    if (!this.#closed) this.#timer.start(this.#pacer.wait(clock.now()), () => this.#tick());
  }
}
