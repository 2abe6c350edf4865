/**
 * The forked process of one call: RTP, mixing and coding. It reads what strangers send and runs a native library; a fault in
 * here ends this process and nothing else.
 */
import { MediaPort, monotonicClock, systemRandomness } from '@bloom/sip';
import { PhoneBridge } from './phone-bridge.js';
import type { FromPhone, ToPhone } from './phone-protocol.js';

const ALIVE_MS = 1000;

function send(message: FromPhone): void {
  process.send?.(message);
}

const bridge = new PhoneBridge((frame) => send({ type: 'frame', ...frame }));
let port: MediaPort | undefined;

async function open(address: string, bindAddress: string): Promise<void> {
  try {
    port = await MediaPort.open({
      address,
      bindAddress,
      clock: monotonicClock,
      randomness: systemRandomness,
      audio: bridge,
      onDigit: (digit) => send({ type: 'digit', digit }),
    });
  } catch (error) {
    send({ type: 'refused', message: error instanceof Error ? error.message : String(error) });
    return;
  }
  const opened = port;
  send({ type: 'opened', port: opened.port });
  setInterval(() => send({ type: 'alive', stats: opened.stats(), quietMs: opened.quietFor() }), ALIVE_MS);
}

process.on('disconnect', () => process.exit(0));
process.on('message', (message: ToPhone) => {
  if (message.type === 'frame') bridge.push(message.track, message.timestamp, message.data);
  else if (message.type === 'gap') bridge.gap(message.track);
  else if (message.type === 'tracks') bridge.setTracks(message.ids);
  else if (message.type === 'agreed') {
    const { direction } = message.audio;
    bridge.setListening(direction === 'sendrecv' || direction === 'sendonly');
    port?.configure(message.audio);
  } else if (message.type === 'open') void open(message.address, message.bindAddress);
  else process.exit(0);
});
