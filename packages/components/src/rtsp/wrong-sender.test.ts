// The real process against loopback cameras, and strangers who send to its ports.
import { afterEach, describe, expect, test } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freeUdpRange } from '@bloom/net/testing';
import { silentLog } from '@bloom/log';
import { Processes } from '@bloom/processes';
import { systemClock } from '@bloom/time';
import { until } from '@bloom/time/testing';
import { nativeInstalled } from '../av/native.js';
import { TestRoom } from '../testing/room.js';
import { closeServers, described, described264, reply, serve } from '../testing/rtsp-server.js';
import type { RtspComponent } from './rtsp-component.js';
import { rtspKind } from './rtsp-kind.js';

const entry = new URL('../../dist/rtsp/engine/puller-main.js', import.meta.url);
const processes = new Processes({ log: silentLog });
const pulling = nativeInstalled() ? describe : describe.skip;
if (!nativeInstalled()) process.stderr.write('*** node-av is not installed, so tests of sources are SKIPPED. ***\n');

const udpSockets = new Set<Socket>();
let component: RtspComponent | undefined;
afterEach(async () => {
  await component?.close();
  closeServers();
  for (const socket of udpSockets) socket.close();
  udpSockets.clear();
});

async function udpSocket(address: string): Promise<Socket> {
  const socket = createSocket('udp4').bind(0, address);
  udpSockets.add(socket);
  await once(socket, 'listening');

  return socket;
}

function certificate(): { key: Buffer; cert: Buffer } {
  const folder = mkdtempSync(join(tmpdir(), 'camera-'));
  try {
    const files = { key: join(folder, 'key.pem'), cert: join(folder, 'cert.pem') };
    const request = `req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=camera -keyout ${files.key} -out ${files.cert}`;
    execFileSync('openssl', request.split(' '), { stdio: 'pipe' });

    return { key: readFileSync(files.key), cert: readFileSync(files.cert) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const CAMERA = 0xca;
const STRANGER = 0xee;

/** An RTP packet with a key picture of one slice filled with `mark`. */
function keyPicture(mark: number, sequence: number): Buffer {
  const packet = Buffer.alloc(100, mark);
  packet.writeUInt16BE(0x80e0, 0);
  packet.writeUInt16BE(sequence, 2);
  packet.writeUInt32BE(sequence * 3_600, 4);
  packet.writeUInt32BE(mark, 8);
  packet.write('65b800', 12, 'hex');

  return packet;
}

/** Starts a camera that supports only UDP, and a component that pulls from it. */
/** Awaited before the camera agrees to send. */
async function pullByUdp(
  query: string,
  rtpPort: number,
  setUp: () => Promise<unknown>,
): Promise<{ room: TestRoom; camera: Socket }> {
  const camera = await udpSocket('127.0.0.1');
  let isPlaying = false;
  const { port } = await serve((request, cseq) => {
    if (request.startsWith('DESCRIBE')) return described(described264, cseq);
    if (!request.startsWith('SETUP')) {
      isPlaying ||= request.startsWith('PLAY');

      return reply('200 OK', cseq, 'Session: 1\r\n');
    }
    const [ports] = /client_port=\d+-\d+/.exec(request) ?? [];
    if (ports === undefined) return reply('461 Unsupported Transport', cseq);
    const serverPort = camera.address().port;
    const transport = `Transport: RTP/AVP;unicast;${ports};server_port=${serverPort}-${serverPort + 1}\r\n`;

    return setUp().then(() => reply('200 OK', cseq, `${transport}Session: 1\r\n`));
  });
  const room = new TestRoom(systemClock);
  const options = { sourceUri: `rtsp://127.0.0.1:${port}/${query}`, rtpPort };
  const prepared = await rtspKind({ processes, entry, hangMs: 10_000 }).prepare(options, {
    roomId: 'kitchen',
    videoCodec: 'h264',
  });
  component = prepared.start(room.host) as RtspComponent;
  await until(() => isPlaying, 20_000);

  return { room, camera };
}

pulling('RTP over UDP [needs node-av]', () => {
  test.each([
    ['is requested by the address', '?udp'],
    ['follows a refusal of TCP', ''],
  ])(
    'accepts media only from the camera when it %s',
    async (_title, query) => {
      const { first: port } = await freeUdpRange(4);
      const strangers = [await udpSocket('127.0.0.2'), await udpSocket('127.0.0.1')];
      let camera: Socket | undefined;
      let sequence = 0;
      // Strangers also send before the camera has agreed to send.
      const sending = setInterval(() => {
        sequence += 1;
        for (const stranger of strangers) stranger.send(keyPicture(STRANGER, sequence), port, '127.0.0.1');
        camera?.send(keyPicture(CAMERA, sequence), port, '127.0.0.1');
      }, 2);
      const pulled = await pullByUdp(query, port, () => {
        const from = sequence;

        return until(() => sequence >= from + 20);
      });
      const { room } = pulled;
      camera = pulled.camera;
      try {
        await until(() => room.sent.length >= 30, 20_000);
      } finally {
        clearInterval(sending);
      }
      const senders = new Set(room.sent.map(({ data }) => data.at(-1)));
      expect(senders).toEqual(new Set([CAMERA]));
    },
    60_000,
  );
});

pulling('camera with RTSP over TLS [needs node-av, openssl]', () => {
  test.each(['', '?udp'])(
    'does not ask for UDP, which is never encrypted, when a camera refuses RTP over TCP: "%s"',
    async (query) => {
      const { port, heard } = await serve((request, cseq) => {
        if (request.startsWith('DESCRIBE')) return described(described264, cseq);

        return request.startsWith('SETUP') ? reply('461 Unsupported Transport', cseq) : reply('200 OK', cseq);
      }, certificate());
      const room = new TestRoom(systemClock);
      const options = { sourceUri: `rtsps://127.0.0.1:${port}/${query}` };
      const prepared = await rtspKind({ processes, entry, hangMs: 10_000 }).prepare(options, {
        roomId: 'kitchen',
        videoCodec: 'h264',
      });
      const started = prepared.start(room.host) as RtspComponent;
      component = started;
      await until(() => (started.inspect() as { state: string }).state === 'waiting', 20_000);
      expect(started.inspect()).toMatchObject({ lostReason: expect.stringContaining('not encrypted') });
      expect(heard.join('')).toContain('RTP/AVP/TCP');
      expect(heard.join('')).not.toContain('client_port');
    },
    60_000,
  );
});
