import type { CallMedia, MediaAddresses, NegotiatedAudio, RtpStats } from '@bloom/sip';
import { awakeClock, Timer } from '@bloom/time';
import { ComponentError } from '../errors.js';
import type { ForkedProcess, Processes } from '@bloom/processes';
import { FrameBatch, framesOf } from './engine/frame-batch.js';
import type { FromPhones, ToPhones } from './engine/phone-protocol.js';

export interface PhoneProcessOptions {
  processes: Processes;
  /** Built entry of the process. */
  entry: URL;
  /** A process that sends nothing for this many ms is killed. */
  hangMs: number;
  /** Called when the process has exited, for any reason. */
  onGone(): void;
}

export interface ChannelOptions extends MediaAddresses {
  /** Called with one Opus packet from the phone; `timestamp` is at 48 kHz, starting at zero. */
  onFrame(frame: { timestamp: number; data: Uint8Array }): void;
  /** Called at most once, when the process exits unexpectedly; not after `close`. */
  onCrash(reason: string): void;
}

const END_MS = 1000;
/** Frames within this time share a message. */
const FLUSH_MS = 10;
/** The heap only holds one second of buffers, and its collector needs no threads. */
const NODE_FLAGS = ['--max-old-space-size=64', '--v8-pool-size=0'];
/** Base usage is 60 MiB. */
const MEMORY_MIB = 192;
/** The Opus library reserves 1 GiB for its WebAssembly and uses a few MiB of it. */
const RESERVED_MIB = 1_152;
const NOTHING_YET: RtpStats = { played: 0, missing: 0, late: 0, dropped: 0, received: 0, refused: 0, sent: 0 };
const NOTHING = new Uint8Array(0);

/** A forked process that handles the sound of a few calls. */
export class PhoneProcess {
  readonly #options: PhoneProcessOptions;
  readonly #process: ForkedProcess<ToPhones, FromPhones>;
  readonly #channels = new Map<number, CallChannel>();
  readonly #batch = new FrameBatch();
  readonly #flush = new Timer();
  #lastCall = 0;
  #gone = false;

  constructor(options: PhoneProcessOptions) {
    this.#options = options;
    const { processes, entry, hangMs } = options;
    this.#process = processes.start({
      kind: 'phones',
      entry,
      memoryMib: MEMORY_MIB,
      reservedMib: RESERVED_MIB,
      nodeFlags: NODE_FLAGS,
      hangMs,
      onMessage: (message) => this.#receive(message),
      onCrash: (reason) => this.#crashed(reason),
    });
  }

  /** Number of calls in the process. */
  get calls(): number {
    return this.#channels.size;
  }

  /** Opens the sound of another call. Rejects when no socket can be opened or the process exits. */
  open(options: ChannelOptions): Promise<CallChannel> {
    this.#lastCall += 1;
    const call = this.#lastCall;
    return new Promise((resolve, reject) => {
      if (this.#gone) {
        reject(new ComponentError('CALL_FAILED', 'the process of the call ended'));
        return;
      }
      const channel = new CallChannel(options, {
        processId: () => this.#process.pid,
        opened: (error) => {
          if (error === undefined) resolve(channel);
          else reject(error);
        },
        send: (message) => this.#send({ ...message, call }),
        push: (track, timestamp, data) => this.#push({ call, track, timestamp, data }),
        close: () => this.#forget(call),
      });
      this.#channels.set(call, channel);
      const { address, bindAddress } = options;
      this.#send({ type: 'open', call, address, bindAddress });
    });
  }

  /** Closes a call. The process ends with its last call. */
  #forget(call: number): void {
    if (!this.#channels.delete(call) || this.#gone) return;
    this.#send({ type: 'close', call });
    if (this.#channels.size > 0) return;
    this.#leave();
    void this.#process.finish({ type: 'end' }, END_MS);
  }

  #push(frame: { call: number; track: number; timestamp: number; data: Uint8Array }): void {
    if (this.#gone) return;
    this.#batch.add(frame);
    if (this.#flush.running) return;
    this.#flush.start(FLUSH_MS, () => {
      if (!this.#batch.empty) this.#send({ type: 'frames', bytes: this.#batch.take() });
    });
  }

  #send(message: ToPhones): void {
    void this.#process.send(message);
  }

  #receive(message: FromPhones): void {
    if (this.#gone) return;
    if (message.type === 'frames') {
      for (const { call, timestamp, data } of framesOf(message.bytes))
        this.#channels.get(call)?.receiveFrame(timestamp, data);
    } else if (message.type === 'alive') {
      for (const { call, stats, quietMs } of message.calls) this.#channels.get(call)?.alive(stats, quietMs);
    } else this.#channels.get(message.call)?.receive(message);
  }

  #leave(): void {
    this.#gone = true;
    this.#flush.stop();
    this.#options.onGone();
  }

  #crashed(reason: string): void {
    if (this.#gone) return;
    this.#leave();
    const channels = [...this.#channels.values()];
    this.#channels.clear();
    for (const channel of channels) channel.crashed(reason);
  }
}

type Unaddressed<T> = T extends { call: number } ? Omit<T, 'call'> : never;

interface ChannelPort {
  processId(): number | undefined;
  /** Called once: without an error when the socket is open. */
  opened(error?: Error): void;
  send(message: Unaddressed<ToPhones>): void;
  push(track: number, timestamp: number, data: Uint8Array): void;
  close(): void;
}

/** Sound of one call in its process. */
export class CallChannel implements CallMedia {
  readonly #options: ChannelOptions;
  readonly #process: ChannelPort;
  /** Track numbers, shorter on the wire than ids. */
  readonly #tracks = new Map<string, number>();
  #lastTrack = 0;
  #port = 0;
  #stats = NOTHING_YET;
  #quiet: { ms: number; at: number } | undefined;
  #closed = false;

  constructor(options: ChannelOptions, process: ChannelPort) {
    this.#options = options;
    this.#process = process;
  }

  get processId(): number | undefined {
    return this.#process.processId();
  }

  get port(): number {
    return this.#port;
  }

  stats(): RtpStats {
    return this.#stats;
  }

  quietFor(): number | undefined {
    return this.#quiet === undefined ? undefined : this.#quiet.ms + awakeClock.now() - this.#quiet.at;
  }

  configure(audio: NegotiatedAudio): void {
    this.#process.send({ type: 'agreed', audio });
  }

  /** Sets the tracks the phone hears, replacing the earlier ones. */
  setTracks(ids: readonly string[]): void {
    const wanted = new Set(ids);
    for (const id of this.#tracks.keys()) if (!wanted.has(id)) this.#tracks.delete(id);
    for (const id of wanted) if (!this.#tracks.has(id)) this.#tracks.set(id, ++this.#lastTrack);
    this.#process.send({ type: 'tracks', tracks: [...this.#tracks.values()] });
  }

  /** Sends one Opus packet of a track; `timestamp` is at 48 kHz. */
  push(id: string, timestamp: number, data: Uint8Array): void {
    const track = this.#tracks.get(id);
    if (track !== undefined && data.length > 0) this.#process.push(track, timestamp, data);
  }

  /** Reports that packets are missing before the track's next one. */
  gap(id: string): void {
    const track = this.#tracks.get(id);
    if (track !== undefined) this.#process.push(track, 0, NOTHING);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#process.close();
  }

  /** Called by the process for each message. */
  receive(message: Exclude<FromPhones, { type: 'frames' | 'alive' }>): void {
    if (this.#closed) return;
    if (message.type === 'digit') this.#options.onDigit(message.digit);
    else if (message.type === 'opened') {
      this.#port = message.port;
      this.#process.opened();
    } else {
      this.#process.opened(
        new ComponentError('CALL_FAILED', `no socket can be opened for the call: ${message.message}`),
      );
      void this.close();
    }
  }

  /** Called by the process for each frame. */
  receiveFrame(timestamp: number, data: Uint8Array): void {
    this.#options.onFrame({ timestamp, data });
  }

  /** Called by the process with the call's statistics. */
  alive(stats: RtpStats, quietMs: number | undefined): void {
    this.#stats = stats;
    this.#quiet = quietMs === undefined ? undefined : { ms: quietMs, at: awakeClock.now() };
  }

  /** Called by the process when it has exited. */
  crashed(reason: string): void {
    this.#process.opened(new ComponentError('CALL_FAILED', `the process of the call ended: ${reason}`));
    if (this.#closed) return;
    this.#closed = true;
    this.#options.onCrash(reason);
  }
}
