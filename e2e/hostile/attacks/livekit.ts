// Participants with LiveKit's signalling, in its text form. They join without a word about themselves.
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from '@jest/globals';
import WebSocket from 'ws';
import { tokenFor } from '../../livekit/participant.js';
import type { Attack, Ground } from '../harness/attack.js';
import { flood } from '../harness/flood.js';
import { many } from '../harness/raw-socket.js';
import { newCredentials, type OfferedLine, writeOffer } from '../harness/offer.js';

/** A WrappedJoinRequest that says that its content, which is empty, is not compressed. */
const EMPTY_JOIN = 'CAA';
const FINGERPRINT = Array.from({ length: 32 }, () => 'AB').join(':');
const RECEIVED: readonly OfferedLine[] = Array.from({ length: 200 }, () => ({ kind: 'audio', direction: 'recvonly' }));
const NAMES = ['__proto__', 'constructor', 'toString', '\0', '😀'.repeat(64)];

async function joined(ground: Ground, identity: string): Promise<WebSocket> {
  const token = await tokenFor(ground.room, identity, { canUpdateOwnMetadata: true });
  const socket = new WebSocket(`ws://${ground.host}/rtc/v1?access_token=${token}&join_request=${EMPTY_JOIN}`);
  socket.on('error', () => undefined);
  ground.after(() => socket.terminate());
  await once(socket, 'message');
  // The server answers in the form that the client has used last.
  socket.send(JSON.stringify({ ping: 1 }));

  return socket;
}

function send(socket: WebSocket, request: unknown): void {
  if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(request));
}

/** Returns an offer whose m-lines no other round has. */
function offer(round: number): string {
  const { ufrag, pwd } = newCredentials();
  const sdp = writeOffer(RECEIVED, { ufrag, pwd, fingerprint: FINGERPRINT });
  const mids = (line: string): string => line.replaceAll(/\b\d+\b/g, `$&r${round}`);

  return sdp.replace(/a=group:BUNDLE .*/, mids).replaceAll(/a=mid:.*/g, mids);
}

export const livekit: readonly Attack[] = [
  {
    title: 'LiveKit offers of 200 m-lines each, none of which any other one has',
    async run(ground) {
      const socket = await joined(ground, 'offering');
      let answers = 0;
      socket.on('message', (frame: Buffer) => {
        if (frame.includes('"answer"')) answers += 1;
      });
      await flood((round) => send(socket, { offer: { type: 'offer', sdp: offer(round), id: round } }), { pauseMs: 30 });
      for (let waited = 0; answers === 0 && waited < 100; waited += 1) await pause(100);
      expect(answers).toBeGreaterThan(0);
    },
  },
  {
    title: 'LiveKit frames of 9,000 fields each, and huge ones',
    async run(ground) {
      const fields = { subscription: { participantTracks: Array.from({ length: 9_000 }, () => ({})) } };
      const requests = [
        fields,
        { mute: { sid: 'x'.repeat(300_000), muted: true } },
        { updateMetadata: { metadata: 'x'.repeat(300_000) } },
        { x: Array.from({ length: 100_000 }, () => []) },
      ];
      const frames = requests.map((request) => JSON.stringify(request));
      for (const frame of frames) {
        const socket = await joined(ground, 'filling');
        await flood(() => void (socket.readyState === WebSocket.OPEN && socket.send(frame)), {
          lastsMs: 1_000,
          perGroup: 5,
        });
        socket.terminate();
      }
    },
  },
  {
    title: "LiveKit participants, rooms and attributes with the names of objects' own properties",
    async run(ground) {
      const socket = await joined(ground, '__proto__');
      for (const name of NAMES) {
        send(socket, JSON.parse(`{"updateMetadata":{"attributes":{${JSON.stringify(name)}:"x"}}}`));
        send(socket, {
          addTrack: { cid: name, name, type: 'VIDEO', source: 'CAMERA', simulcastCodecs: [{ codec: name }] },
        });
        send(socket, {
          subscriptionPermission: { trackPermissions: [{ participantIdentity: name, trackSids: [name] }] },
        });
        send(socket, { trackSetting: { trackSids: [name], quality: 'HIGH' } });
        const token = await tokenFor(name, name);
        const { status } = await fetch(
          `${ground.url}/rtc/v1/validate?access_token=${token}&join_request=${EMPTY_JOIN}`,
        );
        expect([200, 400]).toContain(status);
        const service = await fetch(`${ground.url}/twirp/livekit.${name}/${name}`, { method: 'POST' });
        expect([400, 401, 404]).toContain(service.status);
      }
      await pause(300);
      expect(socket.readyState).toBe(WebSocket.OPEN);
    },
  },
  {
    title: 'LiveKit tokens of strangers, forged and endless, for every path',
    async run(ground) {
      const [header, , signature] = (await tokenFor(ground.room, 'x')).split('.');
      const statuses = new Set<number>();
      await many(40, async (at) => {
        for (let i = 0; i < 8; i += 1) {
          const claims = Buffer.from(JSON.stringify({ iss: 'APIbloom', exp: 9e9, sub: 'x'.repeat(at * 200) }));
          const token = `${header}.${claims.toString('base64url')}.${signature}`;
          const headers = { connection: 'close' };
          for (const path of ['/rtc', '/rtc/v1', '/rtc/v1/validate', '/rtc/validate']) {
            const answer = await fetch(`${ground.url}${path}?access_token=${token}`, { headers });
            await answer.text();
            statuses.add(answer.status);
          }
        }
      });
      expect([...statuses].toSorted((a, b) => a - b)).toEqual([401]);
    },
  },
];
