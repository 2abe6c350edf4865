import { expect } from '@jest/globals';
import { setTimeout as pause } from 'node:timers/promises';
import type { Attack, Ground } from '../harness/attack.js';
import { many, rawConnection } from '../harness/raw-socket.js';

const DURATION_MS = 3_000;
/** Requests of one peer in progress that a node allows (docs/reference/limits.md). */
const IN_PROGRESS = 32;

const OFFER = [
  'v=0',
  'o=- 1 1 IN IP4 127.0.0.1',
  's=-',
  't=0 0',
  'a=group:BUNDLE 0 1',
  'm=audio 9 UDP/TLS/RTP/SAVPF 111',
  'a=mid:0',
  'a=sendonly',
  'a=ice-ufrag:abcd',
  'a=ice-pwd:0123456789012345678901',
  `a=fingerprint:sha-256 ${Array.from({ length: 32 }, () => 'AB').join(':')}`,
  'a=setup:actpass',
  'a=rtpmap:111 opus/48000/2',
  'm=video 9 UDP/TLS/RTP/SAVPF 96',
  'a=mid:1',
  'a=sendonly',
  'a=rtpmap:96 VP8/90000',
  '',
].join('\r\n');

const credentials = (at: number): string => `a=ice-ufrag:u${at}aaa\r\na=ice-pwd:${String(at).padEnd(24, 'p')}\r\n`;

/** Bodies that a client may send instead of an offer or a fragment. */
const BODIES: readonly string[] = [
  '',
  '__proto__',
  'a=\0',
  OFFER.repeat(20),
  OFFER.replace('a=mid:1', 'a=mid:0'),
  OFFER.replace(/^a=fingerprint:.*$/m, 'a=fingerprint:sha-256 00'),
  `${OFFER}${'a=x\r\n'.repeat(11_000)}`,
  `${OFFER}${'m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=sendonly\r\n'.repeat(900)}`,
  'a'.repeat(1_000_000),
  `a=ice-ufrag:${'u'.repeat(60_000)}\r\na=ice-pwd:${'p'.repeat(4_000)}\r\n`,
];

interface Request {
  readonly token: string;
  readonly body?: string;
  readonly type?: string;
}

async function send(ground: Ground, line: string, request: Request): Promise<Response> {
  const [method = '', path = ''] = line.split(' ');
  const { token, body, type = 'application/sdp' } = request;
  const answer = await fetch(`${ground.url}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'content-type': type, 'if-match': '*' }),
    },
    ...(body === undefined ? {} : { body }),
  });
  await answer.arrayBuffer();
  return answer;
}

/** Creates a session and returns its path. */
async function open(ground: Ground, token: string): Promise<string> {
  const answer = await send(ground, 'POST /whip', { token, body: OFFER });
  expect(answer.status).toBe(201);
  return pathOf(answer);
}

function pathOf(opened: Response): string {
  return `/whip/${opened.headers.get('location')?.split('/').at(-1)}`;
}

export const whip: readonly Attack[] = [
  {
    title: 'a WHIP session that restarts ICE without a pause',
    async run(ground) {
      const token = await ground.newToken();
      const path = await open(ground, token);
      const type = 'application/trickle-ice-sdpfrag';
      const startedMs = performance.now();
      let tried = 0;
      let restarts = 0;
      await many(16, async () => {
        while (performance.now() < startedMs + DURATION_MS) {
          tried += 1;
          const { status } = await send(ground, `PATCH ${path}`, { token, type, body: credentials(tried) });
          if (status === 200) restarts += 1;
          else expect(status).toBe(429);
        }
      });
      // One at once, then one per second.
      expect(restarts).toBeLessThanOrEqual(1 + (performance.now() - startedMs) / 1_000);
      expect((await send(ground, `DELETE ${path}`, { token })).status).toBe(200);
    },
  },
  {
    title: 'WHIP sessions opened and closed without a pause',
    async run(ground) {
      const until = performance.now() + DURATION_MS;
      await many(4, async () => {
        const token = await ground.newToken();
        while (performance.now() < until) {
          const answer = await send(ground, 'POST /whip', { token, body: OFFER });
          expect([201, 429]).toContain(answer.status);
          if (answer.status === 201) await send(ground, `DELETE ${pathOf(answer)}`, { token });
        }
      });
    },
  },
  {
    title: 'participants who ask OPTIONS for relays without a pause and never connect',
    async run(ground) {
      const until = performance.now() + DURATION_MS;
      await many(16, async () => {
        const token = await ground.newToken();
        const links = new Set<string | null>();
        while (performance.now() < until) {
          const answer = await send(ground, 'OPTIONS /whip', { token });
          expect(answer.status).toBe(204);
          links.add(answer.headers.get('link'));
        }
        // One relay user per peer, whatever it asks.
        expect(links.size).toBe(1);
      });
      expect((await send(ground, 'OPTIONS /whip', { token: 'x'.repeat(10_000) })).headers.get('link')).toBeNull();
    },
  },
  {
    title: 'malformed and huge WHIP offers and fragments',
    async run(ground) {
      const token = await ground.newToken();
      const path = await open(ground, token);
      const rival = await ground.newToken();
      const type = 'application/trickle-ice-sdpfrag';
      for (const body of BODIES) {
        for (const answer of [
          await send(ground, 'POST /whip', { token: rival, body }),
          await send(ground, 'POST /whep?track=__proto__', { token: rival, body }),
          await send(ground, `PATCH ${path}`, { token, type, body }),
        ]) {
          // A fragment without credentials has no effect.
          expect([204, 400, 406, 413]).toContain(answer.status);
        }
      }
      for (const method of ['PATCH', 'DELETE']) {
        const answer = await send(ground, `${method} ${path}`, { token: rival, type, body: credentials(1) });
        expect(answer.status).toBe(404);
      }
    },
  },
  {
    title: 'a participant who starts hundreds of WHIP requests and withholds the offers',
    async run(ground) {
      const token = await ground.newToken();
      let refused = 0;
      const opened = await many(300, async () => {
        const socket = await rawConnection({ host: ground.host });
        socket.once('data', (data: Buffer) => {
          if (data.toString('latin1').startsWith('HTTP/1.1 429 ')) refused += 1;
        });
        socket.write(
          `POST /whip HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/sdp\r\n` +
            `Content-Length: 65536\r\n\r\n${'x'.repeat(60_000)}`,
        );
        return socket;
      });
      ground.after(() => opened.forEach((socket) => socket.destroy()));
      for (let waited = 0; waited < 50 && refused < 300 - IN_PROGRESS; waited += 1) await pause(100);
      expect(refused).toBe(300 - IN_PROGRESS);
      const other = await ground.newToken();
      await send(ground, `DELETE ${await open(ground, other)}`, { token: other });
    },
  },
];
