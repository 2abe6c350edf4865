/** Stand-ins for the surroundings of a component in this package's tests. */
import { silentLog } from '@bloom/log';
import type { ComponentHost, ComponentReport } from '@bloom/rooms';
import type { FeedFrame, MediaRoom, TapOptions, TappedFrame } from '@bloom/sfu';
import type { Clock } from '@bloom/time';

/** A clock that jumps ahead as soon as a timer is set. */
export class LeapingClock implements Clock {
  #nowMs = 0;
  readonly startedAt = Date.UTC(2026, 0, 2, 3, 4, 5);

  now(): number {
    return this.#nowMs;
  }

  wall(): number {
    return this.startedAt + this.#nowMs;
  }

  setTimeout(run: () => void, ms: number): unknown {
    const timer = { cleared: false };
    queueMicrotask(() => {
      if (timer.cleared) return;
      this.#nowMs += ms;
      run();
    });

    return timer;
  }

  clearTimeout(timer: unknown): void {
    (timer as { cleared: boolean }).cleared = true;
  }

  leap(ms: number): void {
    this.#nowMs += ms;
  }
}

export interface SentFrame extends FeedFrame {
  atMs: number;
}

/** A room as seen by one component. */
export class TestRoom {
  readonly reports: ComponentReport[] = [];
  readonly sent: SentFrame[] = [];
  readonly deeds: string[] = [];
  readonly taps = new Map<string, TapOptions>();
  #waiting: (() => void)[] = [];

  constructor(readonly clock: Clock) {}

  readonly host: ComponentHost = {
    roomId: 'kitchen',
    videoCodec: 'h264',
    componentId: 'component',
    log: silentLog,
    report: (report) => {
      this.reports.push(report);
      for (const wake of this.#waiting.splice(0)) wake();
    },
    media: {
      openFeed: ({ trackId, codec }: { trackId: string; codec: string }) => {
        this.deeds.push(`open ${codec}`);
        return {
          trackId,
          send: (frame: FeedFrame) => void this.sent.push({ ...frame, atMs: this.clock.now() }),
          close: () => void this.deeds.push('close'),
        };
      },
      openTap: (options: TapOptions) => {
        this.taps.set(options.trackId, options);
        return {
          trackId: options.trackId,
          requestKeyframe: () => undefined,
          close: async () => void this.taps.delete(options.trackId),
        };
      },
    } as unknown as MediaRoom,
  };

  async frame(trackId: string, frame: Partial<TappedFrame> & { data: Uint8Array }): Promise<void> {
    const defaults = { codec: 'opus', ssrc: 7, timestamp: 0, key: true, arrivalMs: 0 } as const;
    await this.taps.get(trackId)?.onFrame({ ...defaults, ...frame });
  }

  async until(done: ComponentReport['do']): Promise<ComponentReport> {
    for (;;) {
      const found = this.reports.find((report) => report.do === done);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }
}

/** A 20 ms Opus packet. */
export function opusPacket(fill: number, size = 40): Buffer {
  const packet = Buffer.alloc(size, fill);
  packet[0] = 0xfc;
  return packet;
}

/** Parameter sets of a 640x360 baseline stream as written by x264. */
export const SPS = Buffer.from('6742c01ed900a02ff970110000030001000003003c0f162e48', 'hex');
export const PPS = Buffer.from('68cb83cb20', 'hex');

/** Slices whose headers mark them as first in their picture and of this type (0 = P, 1 = B, 2 = I). */
function slice(nalType: number, sliceType: number, size = 60): Buffer {
  const codes = ['1', '010', '011'];
  const bits = `1${codes[sliceType]}1000`.padEnd(8, '1').slice(0, 8);
  return Buffer.concat([Buffer.from([0x60 | nalType, Number.parseInt(bits, 2)]), Buffer.alloc(size, 0x55)]);
}

export const idr = (size?: number): Buffer => slice(5, 2, size);
export const picture = (size?: number): Buffer => slice(1, 0, size);
export const bidirectional = (): Buffer => slice(1, 1);
