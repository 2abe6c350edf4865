/** werift used as in its documentation: one connection per peer, and one track passed to every sender. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { connected, gathered, type Publisher } from '@bloom/participant';
import type { RTCPeerConnection } from 'werift';
import type { ServerKind } from './server.js';

const program = join(dirname(fileURLToPath(import.meta.url)), 'naive-server.js');

export function naive(): ServerKind {
  return {
    name: 'werift',
    unavailable: () => undefined,
    async start(kind) {
      const child = fork(program, [kind]);
      const waiting: ((answer: { type: 'answer'; sdp: string }) => void)[] = [];
      child.on('message', (answer) => waiting.shift()?.(answer as { type: 'answer'; sdp: string }));
      const negotiate = async (pc: RTCPeerConnection, role: 'publisher' | 'subscriber') => {
        await pc.setLocalDescription(await pc.createOffer());
        await gathered(pc);
        const answer = new Promise<{ type: 'answer'; sdp: string }>((done) => waiting.push(done));
        child.send({ role, sdp: pc.localDescription?.sdp });
        await pc.setRemoteDescription(await answer);
        await connected(pc, role);
      };
      return {
        name: 'werift',
        pid: child.pid as number,
        publish(pc: RTCPeerConnection, publisher: Publisher) {
          pc.addTransceiver(publisher.track, { direction: 'sendonly' });
          return negotiate(pc, 'publisher');
        },
        subscribe(pc: RTCPeerConnection) {
          pc.addTransceiver(kind, { direction: 'recvonly' });
          return negotiate(pc, 'subscriber');
        },
        async close() {
          child.kill('SIGKILL');
          await once(child, 'exit');
        },
      };
    },
  };
}
