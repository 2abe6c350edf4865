import { COMPONENT_SCHEMAS, type ComponentKind, parseOptions, RoomError } from '@bloom/rooms';
import type { Processes } from '@bloom/processes';
import { type Clock, systemClock } from '@bloom/time';
import { RtspComponent } from './rtsp-component.js';
import { parseSourceUri } from './source-uri.js';

export interface RtspKindOptions {
  processes: Processes;
  /** Built entry of a connection's process; defaults to the one beside this file. */
  entry?: URL;
  /** A process that sends nothing for this many ms is killed. */
  hangMs?: number;
  clock?: Clock;
  /** Returns a number in 0..1, 1 excluded; used for delays. */
  random?: () => number;
}

const DEFAULT_HANG_MS = 5_000;
const DEFAULTS = { rtpPort: 20_000, reconnectDelay: 15_000, keepAliveInterval: 15_000, pierceNat: true } as const;

/** Returns the component kind that pulls a camera or encoder into the room. */
export function rtspKind(options: RtspKindOptions): ComponentKind {
  const { processes, entry, hangMs, clock = systemClock, random = Math.random } = options;

  return {
    type: 'rtsp',
    videoCodecs: () => ['h264'],
    limitPerRoom: null,
    prepare: async (given) => {
      const parsed = parseOptions(COMPONENT_SCHEMAS.rtsp.options, given);
      const uri = parseSourceUri(parsed.sourceUri);
      if (uri === undefined) throw new RoomError('INVALID_OPTIONS', 'Invalid request body structure');
      const rtpPort = parsed.rtpPort ?? DEFAULTS.rtpPort;
      const reconnectDelay = parsed.reconnectDelay ?? DEFAULTS.reconnectDelay;
      const keepAliveInterval = parsed.keepAliveInterval ?? DEFAULTS.keepAliveInterval;
      const pierceNat = parsed.pierceNat ?? DEFAULTS.pierceNat;

      return {
        properties: {
          sourceUri: uri.shown,
          rtpPort,
          reconnectDelay,
          keepAliveInterval,
          pierceNat,
        },
        subscribeMode: null,
        start: (host) => {
          // The native library handles both by itself.
          if (keepAliveInterval !== DEFAULTS.keepAliveInterval) {
            host.log.warn('rtsp.option_without_effect', { option: 'keepAliveInterval', value: keepAliveInterval });
          }
          if (pierceNat !== DEFAULTS.pierceNat) {
            host.log.warn('rtsp.option_without_effect', { option: 'pierceNat', value: pierceNat });
          }

          return new RtspComponent({
            host,
            source: uri,
            rtpPort,
            reconnectDelayMs: reconnectDelay,
            processes,
            entry: entry ?? new URL('./engine/puller-main.js', import.meta.url),
            hangMs: hangMs ?? DEFAULT_HANG_MS,
            clock,
            random,
          });
        },
      };
    },
  };
}
