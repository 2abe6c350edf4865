/** Ways of handing packets from one thread to another, each with its two ends. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import type { MessagePort } from 'node:worker_threads';
import { RingReader, RingWriter } from '@bloom/sfu';

export const WAYS = ['nothing', 'ring, woken by a port', 'ring, woken by Atomics', 'batches by a port', 'UDP'] as const;
export type Way = (typeof WAYS)[number];

/** Word of a ring's memory in which its reader says that it sleeps. */
const ASLEEP = 32;
const ROUTE = { room: 1, track: 1, variant: 0 };

export interface WayEnds {
  way: Way;
  ring: SharedArrayBuffer;
  port: MessagePort;
  /** UDP port of the receiver. */
  udpPort: number;
}

/** Returns a function that sends one packet. */
export async function openSender({ way, ring, port, udpPort }: WayEnds): Promise<(packet: Buffer) => void> {
  if (way === 'UDP') {
    const socket = createSocket('udp4');
    socket.connect(udpPort, '127.0.0.1');
    await once(socket, 'connect');
    return (packet) => socket.send(packet);
  }
  if (way === 'batches by a port') {
    let batch: Uint8Array<ArrayBuffer>[] = [];
    return (packet) => {
      if (batch.length === 0) {
        setImmediate(() => {
          const sent = batch;
          batch = [];
          port.postMessage(
            sent,
            sent.map(({ buffer }) => buffer),
          );
        });
      }
      batch.push(new Uint8Array(packet));
    };
  }
  const writer = new RingWriter(ring);
  const control = new Int32Array(ring, 0, 64);
  const wake = way === 'ring, woken by a port' ? () => port.postMessage(0, []) : () => Atomics.notify(control, ASLEEP);
  return (packet) => {
    if (way === 'nothing') return;
    writer.write(ROUTE, packet, 0);
    if (writer.mustWake()) wake();
  };
}

/** Passes each packet on. Returns the UDP port that the sender has to know. */
export async function openReceiver(ends: Omit<WayEnds, 'udpPort'>, take: (packet: Buffer) => void): Promise<number> {
  const { way, ring, port } = ends;
  if (way === 'UDP') {
    const socket = createSocket('udp4');
    socket.on('message', take);
    socket.bind(0, '127.0.0.1');
    await once(socket, 'listening');
    return socket.address().port;
  }
  if (way === 'batches by a port') {
    port.on('message', (batch: Uint8Array[]) => {
      for (const { buffer, byteOffset, byteLength } of batch) take(Buffer.from(buffer, byteOffset, byteLength));
    });
    return 0;
  }
  const reader = new RingReader(ring, Buffer.alloc(2_048));
  const drain = (): void => {
    do {
      while (reader.next()) take(reader.packet.buffer);
    } while (!reader.sleep());
  };
  port.on('message', drain);
  drain();
  if (way === 'ring, woken by Atomics') void drainByAtomics(new Int32Array(ring, 0, 64), drain);
  return 0;
}

/** Not in the types of this language level. */
interface AsyncAtomics {
  waitAsync(words: Int32Array, at: number, value: number): { async: boolean; value: Promise<string> | string };
}

async function drainByAtomics(control: Int32Array, drain: () => void): Promise<void> {
  for (;;) {
    const { async: mustWait, value } = (Atomics as unknown as AsyncAtomics).waitAsync(control, ASLEEP, 1);
    if (mustWait) await value;
    else await new Promise((resolve) => setImmediate(resolve));
    drain();
  }
}
