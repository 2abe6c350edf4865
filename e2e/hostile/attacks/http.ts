import { expect } from '@jest/globals';
import { setTimeout as pause } from 'node:timers/promises';
import { apiToken } from '../../harness/bloom-node.js';
import type { Attack } from '../harness/attack.js';
import { many, rawConnection } from '../harness/raw-socket.js';

export const http: readonly Attack[] = [
  {
    title: 'a thousand incomplete requests',
    async run(ground) {
      const opened = await many(1_000, async (at) => {
        const socket = await rawConnection({ host: ground.host });
        socket.write(
          at % 2 === 0
            ? 'GET /health HTTP/1.1\r\nHost: x\r\nX-Slow: '
            : 'POST /room HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{"a":',
        );
        return socket;
      });
      ground.after(() => opened.forEach((socket) => socket.destroy()));
      for (let round = 0; round < 5; round += 1) {
        for (const socket of opened) socket.write('x');
        await pause(300);
      }
    },
  },
  {
    title: 'forty pipelined requests that offer h2c and are all answered',
    async run(ground) {
      const socket = await rawConnection({ host: ground.host });
      ground.after(() => void socket.destroy());
      let received = '';
      socket.on('data', (chunk: Buffer) => {
        received += chunk.toString('latin1');
      });
      const headers = `Host: x\r\nAuthorization: Bearer ${apiToken}\r\n`;
      const offered = `GET /health HTTP/1.1\r\n${headers}Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n`;
      socket.write(`GET /health HTTP/1.1\r\n${headers}\r\n${offered.repeat(40)}`);
      const answers = (): number => received.split('HTTP/1.1 200').length - 1;
      for (let waited = 0; waited < 50 && answers() < 41; waited += 1) await pause(100);
      expect(answers()).toBe(41);
    },
  },
  {
    title: 'connections that offer h2c, with or without an earlier request, and are reset',
    weight: 2,
    async run(ground) {
      const plain = 'GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n';
      const offer = 'GET /openapi.json HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n';
      const requests = [offer, plain + offer, offer + offer, plain.repeat(8) + offer + plain, offer.slice(0, -2)];
      await many(1_000, async (at) => {
        const socket = await rawConnection({ host: ground.host });
        socket.write(requests[at % requests.length] ?? '');
        await pause(ground.random.below(20));
        if (at % 3 === 0) socket.destroy();
        else socket.resetAndDestroy();
      });
    },
  },
  {
    title: 'thousands of pipelined requests with unread responses',
    async run(ground) {
      const requests = Buffer.from('GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(1_000));
      const opened = await many(20, () => rawConnection({ host: ground.host }));
      ground.after(() => opened.forEach((socket) => socket.destroy()));
      for (let round = 0; round < 20; round += 1) {
        for (const socket of opened) {
          socket.pause();
          if (socket.writable && socket.writableLength < requests.length * 4) socket.write(requests);
        }
        await pause(100);
      }
    },
  },
  {
    title: 'thousands of pipelined requests for the metrics',
    async run(ground) {
      const requests = Buffer.from('GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(1_000));
      const host = `127.0.0.1:${ground.metricsPort}`;
      await many(100, async (at) => {
        const socket = await rawConnection({ host });
        socket.pause();
        socket.write(at % 2 === 0 ? requests : requests.subarray(0, requests.length / 1_000));
        await pause(200);
        socket.destroy();
      });
    },
  },
  {
    title: 'thousands of forged invitations and tokens of viewers, long and short',
    async run(ground) {
      const statuses = new Set<number>();
      await many(40, async (at) => {
        for (let i = 0; i < 25; i += 1) {
          const token = `${'x'.repeat((at * 400) % 14_000)}.${i}`;
          const body = JSON.stringify({ token, name: 'y'.repeat(i) });
          const headers = { 'content-type': 'application/json', connection: 'close' };
          const [guest, viewer] = await Promise.all([
            fetch(`${ground.url}/invitation`, { method: 'POST', headers, body }),
            fetch(`${ground.url}/hls/${ground.room}/~${token}/index.m3u8`, { headers: { connection: 'close' } }),
          ]);
          await Promise.all([guest.text(), viewer.text()]);
          statuses.add(guest.status);
          expect(viewer.status).toBe(401);
        }
      });
      for (const status of statuses) expect([400, 401, 413, 429]).toContain(status);
    },
  },
  {
    title: 'endless checks of the ways to the node, of strangers and with one invitation',
    async run(ground) {
      const issued = await fetch(`${ground.url}/room/${ground.room}/invitation`, {
        method: 'POST',
        headers: { authorization: `Bearer ${apiToken}` },
      });
      const { data } = (await issued.json()) as { data: { token: string } };
      const statuses = new Map<number, number>();
      await many(40, async (at) => {
        for (let i = 0; i < 25; i += 1) {
          const token = at % 2 === 0 ? data.token : `${'x'.repeat(at * 100)}.${i}`;
          const headers = { authorization: `Bearer ${token}`, connection: 'close' };
          const response = await fetch(`${ground.url}/check`, { method: 'POST', headers });
          await response.text();
          if (at % 2 === 1) expect(response.status).toBe(401);
          else statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
        }
      });
      expect([...statuses.keys()].toSorted()).toEqual([201, 429]);
      expect(statuses.get(201)).toBeLessThan(30);
    },
  },
  {
    title: 'malformed, huge and smuggled requests',
    weight: 2,
    async run(ground) {
      const bearer = `Authorization: Bearer ${apiToken}\r\n`;
      const requests = [
        `GET /${'a'.repeat(60_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
        `GET /health HTTP/1.1\r\n${'X-Many: y\r\n'.repeat(5_000)}\r\n`,
        `GET /health HTTP/1.1\r\nHost: x\r\nX-Long: ${'h'.repeat(100_000)}\r\n\r\n`,
        'POST /room HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /health HTTP/1.1\r\n\r\n',
        `POST /room HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${'1;x=y\r\na\r\n'.repeat(20_000)}`,
        `POST /room HTTP/1.1\r\nHost: x\r\n${bearer}Content-Type: application/json\r\nContent-Length: 900000\r\n\r\n${'['.repeat(900_000)}`,
        `POST /room HTTP/1.1\r\nHost: x\r\n${bearer}Content-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc`,
        'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
        '\0'.repeat(10_000),
        `OPTIONS * HTTP/1.1\r\nHost: x\r\n${bearer}\r\n`,
        'GET http://[::1]:99999/health HTTP/1.1\r\nHost: x\r\n\r\n',
        `GET /book/..%2f..%2f..%2fetc%2fpasswd HTTP/1.1\r\nHost: x\r\n\r\n`,
        `GET /book/${'%2e%2e/'.repeat(2_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
        `GET /hls/..%2f..%2f..%2fetc%2fpasswd HTTP/1.1\r\nHost: x\r\n${bearer}\r\n`,
        `GET /raw_recording/..%2f..%2fetc/part_2026-01-02T03-04-05.000Z/passwd HTTP/1.1\r\nHost: x\r\n${bearer}\r\n`,
        `GET /raw_recording?scope=cluster&limit=${'9'.repeat(5_000)} HTTP/1.1\r\nHost: x\r\n${bearer}\r\n`,
        `POST /raw_recording/..%2f../part_2026-01-02T03-04-05.000Z/mix HTTP/1.1\r\nHost: x\r\n${bearer}\r\n`,
        `POST /raw_recording/a/part_2026-01-02T03-04-05.000Z/mix HTTP/1.1\r\nHost: x\r\n${bearer}Content-Type: application/json\r\nContent-Length: 900000\r\n\r\n{"layout":"${'x'.repeat(899_987)}"}`,
        `POST /raw_recording/a/part_2026-01-02T03-04-05.000Z/mix HTTP/1.1\r\nHost: x\r\n${bearer}Content-Type: application/json\r\nContent-Length: 17\r\n\r\n{"width":1e+9999}`,
        `DELETE /raw_recording/a/part_${'9'.repeat(5_000)}/mix HTTP/1.1\r\nHost: x\r\n${bearer}\r\n`,
        `DELETE /raw_recording/${'%2e%2e%2f'.repeat(1_000)}/part_2026-01-02T03-04-05.000Z HTTP/1.1\r\nHost: x\r\n${bearer}\r\n`,
      ];
      const opened = await many(requests.length * 10, async (at) => {
        const socket = await rawConnection({ host: ground.host });
        socket.resume();
        socket.write(requests[at % requests.length] ?? '');
        return socket;
      });
      ground.after(() => opened.forEach((socket) => socket.destroy()));
      await pause(1_000);
    },
  },
];
