// Tests encoders and relays in a room: FFmpeg listens for SRT and RTMP, and a TLS server fronts a camera.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { afterEach, expect, test } from '@jest/globals';
import { freeTcpPort } from '@bloom/net/testing';
import { until } from '../cluster/until.js';
import { describeWith, testWith } from '../harness/needs.js';
import { repository } from '../harness/processes.js';
import { browserSuite } from '../harness/stage.js';
import { startPair } from '../hls/pair.js';
import { addComponent } from '../recordings/parts.js';
import { Camera } from './camera.js';

interface Track {
  id: string;
  type: 'audio' | 'video';
}

const red = '-re -f lavfi -i color=0xC81E1E:s=320x240:r=25 -f lavfi -i sine=f=440:r=48000'.split(' ');
const encoded = (sound: string, ...video: string[]): string[] => [
  ...red,
  ...'-c:v libx264 -preset ultrafast -pix_fmt yuv420p -g 25'.split(' '),
  ...(video.length > 0 ? video : ['-tune', 'zerolatency']),
  '-c:a',
  sound,
];

describeWith(['ffmpeg', 'node-av'], 'An encoder in a room of another node', () => {
  test('is added, shown and removed through the node that received the requests', async () => {
    const port = await freeTcpPort();
    const args = ['-v', 'error', ...encoded('aac'), '-f', 'mpegts', `srt://127.0.0.1:${port}?mode=listener`];
    const encoder = spawn('ffmpeg', args, { stdio: 'ignore' });
    const pair = await startPair();
    try {
      const { api } = pair.one;
      const room = await pair.roomOnTwo();
      const component = await addComponent(api, room, {
        type: 'rtsp',
        options: { sourceUri: `srt://127.0.0.1:${port}`, reconnectDelay: 500 },
      });
      const tracks = async (): Promise<Track[]> => (await api.room(room)).components[0].tracks;
      await until('both tracks', async () => (await tracks()).length === 2);
      const path = `/room/${room}/component/${component}`;
      expect((await api.request('DELETE', path)).status).toBe(204);
      expect((await api.room(room)).components).toEqual([]);
    } finally {
      encoder.kill('SIGKILL');
      await pair.stop();
    }
  }, 120_000);
});

browserSuite('Encoders', { needs: ['ffmpeg', 'node-av'] }, (stage) => {
  const programs: ChildProcess[] = [];
  afterEach(async () => {
    for (const program of programs.splice(0)) {
      if (program.exitCode !== null || program.signalCode !== null) continue;
      program.kill('SIGKILL');
      await once(program, 'exit');
    }
  });

  function run(command: string, args: readonly string[]): void {
    programs.push(spawn(command, args, { stdio: 'ignore' }));
  }
  const ffmpeg = (...args: string[]): void => run('ffmpeg', ['-v', 'error', ...args]);

  async function seenAndHeard(sourceUri: string): Promise<void> {
    const { ann, room } = await stage.call(['ann'], { videoCodec: 'h264' });
    await addComponent(stage.api, room, { type: 'rtsp', options: { sourceUri, reconnectDelay: 500 } });
    const tracks = await until<Track[] | false>('both tracks', async () => {
      const all: Track[] = (await stage.api.room(room)).components[0].tracks;
      return all.length === 2 && all;
    });
    const idOf = (kind: Track['type']): string => tracks.find(({ type }) => type === kind)!.id;
    await Promise.all([ann.plays(idOf('video'), 'red'), ann.sounds(idOf('audio'), 440)]);
  }

  test('plays an encoder that listens for SRT, with AAC and a passphrase', async () => {
    const port = await freeTcpPort();
    const secret = 'passphrase=correct-horse';
    ffmpeg(...encoded('aac'), '-f', 'mpegts', `srt://127.0.0.1:${port}?mode=listener&${secret}`);
    await seenAndHeard(`srt://127.0.0.1:${port}?${secret}`);
    expect(stage.node.log()).not.toContain('correct-horse');
  });

  test('plays an encoder that listens for SRT, with MP2', async () => {
    const port = await freeTcpPort();
    ffmpeg(...encoded('mp2'), '-f', 'mpegts', `srt://127.0.0.1:${port}?mode=listener`);
    await seenAndHeard(`srt://127.0.0.1:${port}`);
  });

  test('plays from an RTMP server', async () => {
    const address = `rtmp://127.0.0.1:${await freeTcpPort()}/live/yard`;
    ffmpeg(...encoded('aac'), '-f', 'flv', '-listen', '1', address);
    await seenAndHeard(address);
  });

  test('plays an encoder that pushes RTMP to the relay of the guide', async () => {
    const guide = readFileSync(join(repository, 'docs', 'guide', 'encoders.md'), 'utf8');
    const [line = ''] = /^ffmpeg -listen 1 .*$/m.exec(guide) ?? [];
    const [rtmp, srt] = [await freeTcpPort(), await freeTcpPort()];
    const here = line.replace(':1935', `:${rtmp}`).replace(':9000', `:${srt}`).replaceAll('0.0.0.0', '127.0.0.1');
    expect(here).toContain(`'srt://127.0.0.1:${srt}?mode=listener'`);
    run('sh', ['-c', `exec ${here}`]);
    // The encoder retries until the relay listens.
    run('sh', [
      '-c',
      `until ffmpeg "$@"; do sleep 0.3; done`,
      'sh',
      '-v',
      'error',
      ...encoded('aac'),
      '-f',
      'flv',
      `rtmp://127.0.0.1:${rtmp}/live/yard`,
    ]);
    await seenAndHeard(`srt://127.0.0.1:${srt}`);
  });

  test('crashes the component on B-frames, and logs the reason', async () => {
    const address = `rtmp://127.0.0.1:${await freeTcpPort()}/live/yard`;
    ffmpeg(...encoded('aac', '-bf', '2'), '-f', 'flv', '-listen', '1', address);
    const room = await stage.room({ videoCodec: 'h264' });
    await addComponent(stage.api, room, { type: 'rtsp', options: { sourceUri: address, reconnectDelay: 500 } });
    await until('the component is gone', async () => (await stage.api.room(room)).components.length === 0);
    await until('the log says why', () => /component\.crashed.*B frames/.test(stage.node.log()));
  });

  /** Runs `use` with the port of a TLS server in front of this one, with a self-signed certificate. */
  async function behindTls(port: number, use: (port: number) => Promise<void>): Promise<void> {
    const folder = mkdtempSync(join(tmpdir(), 'bloom-camera-'));
    const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
    const request = `req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=camera -keyout ${key} -out ${cert}`;
    execFileSync('openssl', request.split(' '), { stdio: 'pipe' });
    const server = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (near) => {
      const far = connect(port, '127.0.0.1');
      for (const [one, other] of [
        [near, far],
        [far, near],
      ] as const) {
        one.on('error', () => other.destroy());
        one.on('close', () => other.destroy());
        one.pipe(other);
      }
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      await use((server.address() as AddressInfo).port);
    } finally {
      server.close();
      rmSync(folder, { recursive: true, force: true });
    }
  }

  testWith(['cameras', 'openssl'], 'plays a camera behind TLS with a self-signed certificate', async () => {
    const camera = await Camera.start();
    try {
      await behindTls(camera.port, (port) => seenAndHeard(`rtsps://127.0.0.1:${port}/opus`));
    } finally {
      await camera.kill();
    }
  });

  testWith(['openssl'], 'plays from an RTMP server behind TLS', async () => {
    const port = await freeTcpPort();
    ffmpeg(...encoded('aac'), '-f', 'flv', '-listen', '1', `rtmp://127.0.0.1:${port}/live/yard`);
    await behindTls(port, (tls) => seenAndHeard(`rtmps://127.0.0.1:${tls}/live/yard`));
  });
});
