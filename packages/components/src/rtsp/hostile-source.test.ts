// The real process against loopback servers that are not cameras.
import { afterEach, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { systemClock } from '@bloom/time';
import { silentLog } from '@bloom/log';
import { Processes } from '@bloom/processes';
import { until } from '@bloom/time/testing';
import { nativeInstalled } from '../av/native.js';
import { TestRoom } from '../testing/room.js';
import { broadcast, closeServers, described, reply, serve, session } from '../testing/rtsp-server.js';
import { pullerInput } from './puller-input.js';
import type { RtspComponent } from './rtsp-component.js';
import { rtspKind } from './rtsp-kind.js';
import { parseSourceUri } from './source-uri.js';

const entry = new URL('../../dist/rtsp/engine/puller-main.js', import.meta.url);
const pulling = nativeInstalled() ? describe : describe.skip;
if (!nativeInstalled()) process.stderr.write('*** node-av is not installed, so tests of sources are SKIPPED. ***\n');

interface Inspection {
  state: string;
  processId: number;
  lostReason: string | null;
}

const components = new Set<RtspComponent>();
afterEach(async () => {
  await Promise.all([...components].map((component) => component.close()));
  components.clear();
  closeServers();
});

async function pull(sourceUri: string): Promise<{ room: TestRoom; inspect(): Inspection }> {
  const room = new TestRoom(systemClock);
  const kind = rtspKind({ processes: new Processes({ log: silentLog }), entry, hangMs: 10_000 });
  const prepared = await kind.prepare({ sourceUri }, { roomId: 'kitchen', videoCodec: 'h264' });
  const started = prepared.start(room.host) as RtspComponent;
  components.add(started);

  return { room, inspect: () => started.inspect() as Inspection };
}

pulling('source that is not a camera [needs node-av]', () => {
  test('drops a source that redirects to files or other protocols, which are never opened', async () => {
    const web = await serve(() => 'HTTP/1.1 200 OK\r\n\r\n#EXTM3U\n');
    for (const target of [
      'file:///etc/passwd',
      `http://127.0.0.1:${web.port}/list.m3u8`,
      'concat:/etc/passwd|/etc/group',
      'unix:///var/run/docker.sock',
    ]) {
      const { port } = await serve((_request, cseq) => reply('302 Moved', cseq, `Location: ${target}\r\n`));
      const { room, inspect } = await pull(`rtsp://127.0.0.1:${port}/`);
      await until(() => inspect().state === 'waiting', 20_000);
      expect(room.reports).toEqual([]);
    }
    expect(web.heard.filter((request) => request.startsWith('GET'))).toEqual([]);
  }, 60_000);

  test('follows a redirect to another address of the same protocol', async () => {
    const other = await serve((_request, cseq) => reply('404 Not Found', cseq));
    const location = `Location: rtsp://127.0.0.1:${other.port}/moved\r\n`;
    const { port } = await serve((_request, cseq) => reply('302 Moved', cseq, location));
    const { inspect } = await pull(`rtsp://127.0.0.1:${port}/`);
    await until(() => inspect().state === 'waiting', 20_000);
    expect(inspect().lostReason).toContain('404');
    expect(other.heard[0]).toContain('/moved');
  }, 60_000);

  test('does not get the login of the camera that redirects to it', async () => {
    const challenge = 'WWW-Authenticate: Basic realm="x"\r\n';
    const other = await serve((_request, cseq) => reply('401 Unauthorized', cseq, challenge));
    const location = `Location: rtsp://127.0.0.1:${other.port}/moved\r\n`;
    const camera = await serve((request, cseq) =>
      request.includes('Authorization')
        ? reply('302 Moved', cseq, location)
        : reply('401 Unauthorized', cseq, challenge),
    );
    const { inspect } = await pull(`rtsp://admin:hunter2@127.0.0.1:${camera.port}/`);
    await until(() => inspect().state === 'waiting', 20_000);
    expect(inspect().lostReason).toContain('401');
    expect(camera.heard.join('')).toContain('Authorization');
    expect(other.heard[0]).toContain('/moved');
    expect(other.heard.join('')).not.toContain('Authorization');
  }, 60_000);

  test('drops a source immediately that announces a session description of 2 GB', async () => {
    const { port } = await serve((_request, cseq) => reply('200 OK', cseq, 'Content-Length: 2147483000\r\n'));
    const { inspect } = await pull(`rtsp://127.0.0.1:${port}/`);
    await until(() => inspect().state === 'waiting', 20_000);
    expect(inspect().lostReason).toContain('allowed are 65536');
  }, 60_000);

  test('drops or rejects a source, whatever it answers', async () => {
    const garbage = Buffer.alloc(100_000, 0x24);
    const answers = [
      () => garbage,
      () => 'HTTP/1.1 400 Bad Request\r\n\r\n',
      (_request: string, cseq: string) => reply('200 OK', cseq, `Content-Length: 2147483647\r\n`),
      (_request: string, cseq: string) => reply('401 Unauthorized', cseq, 'WWW-Authenticate: Digest realm="x"\r\n'),
      (_request: string, cseq: string) => described(`${session}m=video 0 RTP/AVP 96\r\n`.repeat(500), cseq),
      (_request: string, cseq: string) =>
        described(
          `${session}m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n` +
            `a=fmtp:96 sprop-parameter-sets=${'A'.repeat(10_000)}\r\na=control:file:///etc/passwd\r\n`,
          cseq,
        ),
      (_request: string, cseq: string) => described(`${session}a=control:rtsp://[::`, cseq),
    ];
    await Promise.all(
      answers.map(async (answer) => {
        const { port } = await serve(answer);
        const { room, inspect } = await pull(`rtsp://127.0.0.1:${port}/`);
        await until(() => ['waiting', 'failed'].includes(inspect().state), 40_000);
        expect(room.deeds).toEqual([]);
      }),
    );
  }, 60_000);

  test("shows the password to the camera, but not in the process's command line and environment", async () => {
    const { port, heard } = await serve((_request, cseq) =>
      reply('401 Unauthorized', cseq, 'WWW-Authenticate: Basic realm="x"\r\n'),
    );
    const { inspect } = await pull(`rtsp://admin:hunter2@127.0.0.1:${port}/`);
    const { processId } = inspect();
    const shown = ['cmdline', 'environ'].map((file) => readFileSync(`/proc/${processId}/${file}`, 'latin1'));
    expect(shown[0]).toContain('puller-main');
    expect(shown.join('')).not.toMatch(/hunter2|admin/);
    await until(() => inspect().state === 'waiting', 20_000);
    expect(heard.join('')).toContain(Buffer.from('admin:hunter2').toString('base64'));
    expect(JSON.stringify(inspect())).not.toMatch(/hunter2|admin/);
  }, 60_000);
});

pulling('server that is not an RTMP server [needs node-av]', () => {
  test('does not let a source fill the process with messages that never end', async () => {
    const filling = Buffer.alloc(2 * 1024 * 1024);
    let stream = 3;
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      let heard = 0;
      socket.on('data', (bytes) => {
        const before = heard;
        heard += bytes.length;
        if (before < 1_537 && heard >= 1_537) socket.write(Buffer.concat([Buffer.of(3), Buffer.alloc(2 * 1_536)]));
        if (before < 3_073 && heard >= 3_073) flood();
      });
      const flood = (): void => {
        // From now on send chunks of 2 MiB, each the start of a 16 MiB message in a separate chunk stream.
        socket.write(Buffer.from('02000000000004010000000000200000', 'hex'));
        const next = (): void => {
          while (stream < 259 && !socket.destroyed) {
            const basic = stream < 64 ? Buffer.of(stream) : Buffer.of(0, stream - 64);
            stream += 1;
            const isTaken = socket.write(Buffer.concat([basic, Buffer.from('000000ffffff0901000000', 'hex'), filling]));
            if (!isTaken) return void socket.once('drain', next);
          }
        };
        next();
      };
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      const { inspect } = await pull(`rtmp://127.0.0.1:${(server.address() as AddressInfo).port}/live/yard`);
      await until(() => inspect().state === 'waiting', 20_000);
      // Each of the 256 chunk streams would have taken 2 MiB.
      expect(stream).toBeLessThan(150);
    } finally {
      server.close();
    }
  }, 60_000);
});

pulling('source that is left [needs node-av]', () => {
  test('gets a TEARDOWN, since cameras have few sessions', async () => {
    const sdp = `${session}m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=control:0\r\n`;
    // RTP interleaved in the RTSP connection, with slices that are not key pictures.
    const packet = Buffer.from('2400000f80e00001000000000000000141e112', 'hex');
    const { port, heard } = await serve((request, cseq) => {
      if (request.startsWith('DESCRIBE')) return described(sdp, cseq);
      const setup = 'Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\nSession: 1\r\n';
      return reply('200 OK', cseq, request.startsWith('SETUP') ? setup : 'Session: 1\r\n');
    });
    const sending = setInterval(() => {
      packet.writeUInt16BE(packet.readUInt16BE(6) + 1, 6);
      packet.writeUInt32BE(packet.readUInt32BE(8) + 1_800, 8);
      if (heard.some((request) => request.startsWith('PLAY'))) broadcast(packet);
    }, 20);
    try {
      await pull(`rtsp://127.0.0.1:${port}/`);
      await until(() => heard.some((request) => request.startsWith('PLAY')), 20_000);
      await Promise.all([...components].map((component) => component.close()));
      await until(() => heard.at(-1)?.startsWith('TEARDOWN '));
    } finally {
      clearInterval(sending);
    }
  }, 60_000);
});

describe('the input of the native library', () => {
  const input = (uri: string) => pullerInput(parseSourceUri(uri)!, 20_000);

  test('names its format and protocols for each scheme, none of which reaches a file', () => {
    const asked = ['rtsp://c/', 'rtsps://c/', 'srt://c:1', 'rtmp://c/a', 'rtmps://c/a'].map(input);
    expect(asked.map(({ format, options }) => [format, options['protocol_whitelist']])).toEqual([
      ['rtsp', 'rtsp,tcp,udp,rtp'],
      ['rtsp', 'rtsp,tcp'],
      ['mpegts', 'srt'],
      ['flv', 'rtmp,tcp'],
      ['flv', 'rtmps,tls,tcp'],
    ]);
  });

  test('prefers TCP unless the address says otherwise', () => {
    expect(input('rtsp://c/').options).toMatchObject({
      rtsp_transport: 'tcp+udp',
      rtsp_flags: 'prefer_tcp+filter_src',
    });
    expect(input('rtsp://c/?a=b&udp').options).toMatchObject({ rtsp_transport: 'udp', rtsp_flags: 'filter_src' });
    expect(input('rtsp://c/?tcp').options).toMatchObject({ rtsp_transport: 'tcp' });
    expect(input('rtsps://c/').options).toMatchObject({ rtsp_transport: 'tcp' });
  });

  test.each<[uri: string, given: { address: string; expected: string; more?: object }]>([
    [
      'rtsp://u:p@cam.test/1',
      { address: '10.0.0.7', expected: 'rtsp://u:p@cam.test/1', more: { address: '10.0.0.7' } },
    ],
    ['srt://cam.test:9000?streamid=a', { address: 'fd00::7', expected: 'srt://[fd00::7]:9000' }],
    ['rtmp://u:p@cam.test/live/a?key=1', { address: '10.0.0.7', expected: 'rtmp://u:p@10.0.0.7:1935/live/a?key=1' }],
    ['rtmps://cam.test/live/a', { address: '10.0.0.7', expected: 'rtmps://cam.test/live/a' }],
    ['rtmp://10.0.0.9/live/a', { address: '10.0.0.9', expected: 'rtmp://10.0.0.9/live/a' }],
  ])('uses an address in place of the name of %s, unless TLS needs the name', (uri, { address, expected, more }) => {
    expect(pullerInput(parseSourceUri(uri)!, 20_000, address)).toMatchObject({ uri: expected, ...more });
  });

  test.each([
    ['rtmp://cam.test/live/a', 'rtmp://cam.test:1935/live'],
    ['rtmp://cam.test:99/live/inst/a', 'rtmp://cam.test:99/live/inst'],
    ['rtmp://cam.test/live/mp4:x/a', 'rtmp://cam.test:1935/live'],
    ['rtmp://cam.test/ondemand/x/a', 'rtmp://cam.test:1935/ondemand'],
  ])('keeps the name of %s for the server, which may host several', (uri, tcUrl) => {
    expect(pullerInput(parseSourceUri(uri)!, 20_000, '10.0.0.7').options['rtmp_tcurl']).toBe(tcUrl);
  });

  test('reserves four ports', () => {
    expect(pullerInput(parseSourceUri('rtsp://c/')!, 65_535).rtpPort).toBe(65_532);
  });
});
