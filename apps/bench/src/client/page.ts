import { build } from 'esbuild';

/** The page of the benchmark: each function joins a room, and most return the milliseconds until the first picture. */
const PAGE = `
  import { RoomClient } from '@bloom/client';
  import { JellyfishClient } from '@jellyfish-dev/ts-client-sdk';

  const firstFrame = (track) => new Promise((resolve) => {
    const video = document.createElement('video');
    Object.assign(video, { muted: true, autoplay: true, srcObject: new MediaStream([track]) });
    document.body.append(video);
    video.requestVideoFrameCallback(() => resolve(performance.now()));
  });

  window.bloom = async (host, token) => {
    const begun = performance.now();
    const client = new RoomClient();
    const media = new Promise((resolve) => client.on('trackReady', ({ media }) => resolve(media)));
    await client.connect({ url: host, token });
    return (await firstFrame(await media)) - begun;
  };

  window.published = async (host, token) => {
    const begun = performance.now();
    const client = new JellyfishClient();
    const media = new Promise((resolve) => client.on('trackReady', ({ track }) => resolve(track)));
    client.connect({ token, peerMetadata: {}, signaling: { protocol: 'ws', host, path: '/socket/peer/websocket' } });
    return (await firstFrame(await media)) - begun;
  };

  window.publish = async (host, token) => {
    const canvas = Object.assign(document.createElement('canvas'), { width: 640, height: 360 });
    const context = canvas.getContext('2d');
    setInterval(() => {
      context.fillStyle = 'hsl(' + (performance.now() / 10) + ' 80% 50%)';
      context.fillRect(0, 0, 640, 360);
    }, 33);
    const client = new RoomClient();
    await client.connect({ url: host, token });
    await client.publish(canvas.captureStream(30).getVideoTracks()[0], { simulcast: false });
  };
`;

/** Returns the script of the page. */
export async function pageScript(): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents: PAGE, resolveDir: process.cwd() },
    bundle: true,
    format: 'iife',
    write: false,
  });
  return outputFiles[0]?.text ?? '';
}
