import { readCapture, type MediaRoom } from '@bloom/sfu';
import type { Producers } from '../inspector/inspector.js';
import { InspectionError } from '../errors.js';
import { fileHeader, record } from '../process/pcap.js';
import type { InspectionSources } from '../sources.js';
import { transportOf } from './peer-rates.js';

/** Reading interval: the media engine buffers one megabyte of headers between two readings. */
const READ_EVERY_MS = 50;
/** Placeholder for an unknown address. */
const NOWHERE = { address: '0.0.0.0', port: 0 };

export function captureProducers({ rooms, self, log }: InspectionSources): Producers {
  /** Peers with a running capture, by room. A second capture would take packets from the first and end it. */
  const captured = new Set<string>();

  return {
    pcap: async ({ room, peer, limit }, stream, { tool }) => {
      const media = rooms.media(room);
      if (media === undefined) throw new InspectionError('UNKNOWN_ROOM', `${self} has no room ${room}`);
      const key = JSON.stringify([room, peer]);
      if (captured.has(key)) throw new InspectionError('BUSY', `packets of ${peer} are already being captured`);
      captured.add(key);
      const first = await media.capturePackets(peer).catch(() => undefined);
      if (first === undefined) {
        captured.delete(key);
        throw new InspectionError('UNKNOWN_PEER', `the room ${room} has no peer ${peer} with a transport`);
      }
      log.info('inspection.pcap', { tool, roomId: room, peerId: peer });
      stream.push({ bytes: fileHeader() });
      let packets = 0;
      let dropped = 0;

      const read = async (): Promise<void> => {
        const [taken, ends] = [await media.capturePackets(peer), await endsOf(media, peer)];
        if (taken === undefined) {
          stream.end('complete', 'the transport of the peer has ended');
          return;
        }
        const pieces: Buffer[] = [];
        for (const { atMs, direction, header, length } of readCapture(taken.notes)) {
          if (packets >= limit) break;
          packets++;
          const [from, to] = direction === 'in' ? [ends.remote, ends.local] : [ends.local, ends.remote];
          pieces.push(record({ atMs, from, to, shown: header, length }));
        }
        stream.countDropped(taken.dropped - dropped);
        dropped = taken.dropped;
        if (pieces.length > 0) await stream.write({ bytes: Buffer.concat(pieces) });
        if (packets >= limit) stream.end('limit');
      };
      const stop = stream.repeat(READ_EVERY_MS, read);

      return () => {
        stop();
        captured.delete(key);
        media.capturePackets(peer, true).catch(() => undefined);
      };
    },
  };
}

async function endsOf(media: MediaRoom, peer: string): Promise<{ local: typeof NOWHERE; remote: typeof NOWHERE }> {
  const transport = transportOf(await media.stats(), peer);
  const { address, port } = media.endpointOf(peer) ?? NOWHERE;
  const { remoteAddress, remotePort = 0 } = transport ?? {};

  return {
    local: { address, port },
    remote: remoteAddress === undefined ? NOWHERE : { address: remoteAddress, port: remotePort },
  };
}
