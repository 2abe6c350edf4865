/**
 * Entry of a forked process of calls, for RTP, mixing and codecs. It parses untrusted input and runs a native library,
 * so a crash ends only this process.
 */
import { MediaPort, systemRandomness } from '@bloom/sip';
import { followServer } from '@bloom/processes';
import { FrameBatch, framesOf } from './frame-batch.js';
import { GridClock } from './grid-clock.js';
import { PhoneBridge } from './phone-bridge.js';
import type { FromPhones, ToPhones } from './phone-protocol.js';

const ALIVE_MS = 1000;

interface OpenCall {
  bridge: PhoneBridge;
  port: MediaPort | undefined;
}

const calls = new Map<number, OpenCall>();
const heard = new FrameBatch();
const clock = new GridClock(() => {
  if (!heard.empty) send({ type: 'frames', bytes: heard.take() });
});

function send(message: FromPhones): void {
  // Without a channel, the process is about to exit.
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
}

async function open(call: number, address: string, bindAddress: string): Promise<void> {
  const bridge = new PhoneBridge(({ timestamp, data }) => heard.add({ call, track: 0, timestamp, data }));
  const opened: OpenCall = { bridge, port: undefined };
  calls.set(call, opened);
  try {
    const port = await MediaPort.open({
      address,
      bindAddress,
      clock,
      randomness: systemRandomness,
      audio: bridge,
      onDigit: (digit) => send({ type: 'digit', call, digit }),
    });
    if (!calls.has(call)) {
      await port.close();
      return;
    }
    opened.port = port;
    send({ type: 'opened', call, port: port.port });
  } catch (error) {
    calls.delete(call);
    send({ type: 'refused', call, message: error instanceof Error ? error.message : String(error) });
  }
}

function receive(message: ToPhones): void {
  switch (message.type) {
    case 'frames':
      for (const { call, track, timestamp, data } of framesOf(message.bytes)) {
        const bridge = calls.get(call)?.bridge;
        if (data.length === 0) bridge?.gap(track);
        else bridge?.push(track, timestamp, data);
      }
      return;
    case 'open':
      void open(message.call, message.address, message.bindAddress);
      return;
    case 'tracks':
      calls.get(message.call)?.bridge.setTracks(message.tracks);
      return;
    case 'agreed': {
      const { direction } = message.audio;
      const call = calls.get(message.call);
      call?.bridge.setListening(direction === 'sendrecv' || direction === 'sendonly');
      call?.port?.configure(message.audio);
      return;
    }
    case 'close':
      void calls.get(message.call)?.port?.close();
      calls.delete(message.call);
      return;
    case 'end':
      process.exit(0);
  }
}

followServer();
process.on('message', receive);
setInterval(() => {
  const all = [...calls].flatMap(([call, { port }]) =>
    port === undefined ? [] : [{ call, stats: port.stats(), quietMs: port.quietFor() }],
  );
  send({ type: 'alive', calls: all });
}, ALIVE_MS);
