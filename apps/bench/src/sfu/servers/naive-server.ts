/** The process behind naive.ts. */
import { gathered, type TrackKind } from '@bloom/participant';
import type { MediaStreamTrack } from 'werift';
import { connection } from '../client.js';

const kind = process.argv[2] as TrackKind;
let source: MediaStreamTrack | undefined;

async function answer(role: 'publisher' | 'subscriber', sdp: string): Promise<void> {
  const pc = connection();
  if (role === 'publisher') {
    const transceiver = pc.addTransceiver(kind, { direction: 'recvonly' });
    transceiver.onTrack.subscribe((track) => {
      source = track;
    });
  } else if (source) {
    pc.addTransceiver(source, { direction: 'sendonly' });
  }
  await pc.setRemoteDescription({ type: 'offer', sdp });
  await pc.setLocalDescription(await pc.createAnswer());
  await gathered(pc);
  process.send?.({ type: 'answer', sdp: pc.localDescription?.sdp });
}

process.on('message', (message: { role: 'publisher' | 'subscriber'; sdp: string }) => {
  void answer(message.role, message.sdp);
});
process.on('disconnect', () => process.exit(0));
