// A camera in a separate process: gst-rtsp-server, which can be killed, frozen and changed while it streams.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface, type Interface } from 'node:readline';
import { join } from 'node:path';
import { freeTcpPort } from '@bloom/net/testing';
import { repository } from '../harness/processes.js';

const size = (width: number, height: number): string => `video/x-raw,width=${width},height=${height},framerate=25/1`;
const raw =
  `videotestsrc name=picture is-live=true pattern=solid-color foreground-color=0xffc81e1e ! ` +
  `capsfilter name=size caps=${size(320, 240)}`;
const h264 =
  `${raw} ! x264enc tune=zerolatency speed-preset=ultrafast key-int-max=25 bitrate=500 ! ` +
  `video/x-h264,profile=baseline ! rtph264pay name=pay0 pt=96`;
const tone = 'audiotestsrc is-live=true freq=440 ! audioconvert ! audioresample';

/** What the test cameras send: red, and a tone of 440 Hz. */
const streams = {
  '/aac': `( ${h264} ${tone} ! voaacenc ! rtpmp4gpay name=pay1 pt=97 )`,
  '/g711': `( ${h264} ${tone} ! audio/x-raw,rate=8000,channels=1 ! alawenc ! rtppcmapay name=pay1 pt=8 )`,
  '/opus': `( ${h264} ${tone} ! audio/x-raw,rate=48000 ! opusenc ! rtpopuspay name=pay1 pt=97 )`,
  '/mute': `( ${h264} )`,
  /** Refuses RTP over TCP. */
  '/udp': `( ${h264} )`,
  '/sound': `( ${tone} ! audio/x-raw,rate=48000 ! opusenc ! rtpopuspay name=pay0 pt=97 )`,
  '/h265': `( ${raw} ! x265enc tune=zerolatency speed-preset=ultrafast ! rtph265pay name=pay0 pt=96 )`,
} as const;

export class Camera {
  #child: ChildProcess | undefined;
  #answers: Interface | undefined;

  private constructor(
    readonly port: number,
    readonly login: readonly string[],
  ) {}

  static async start(...login: string[]): Promise<Camera> {
    const camera = new Camera(await freeTcpPort(), login);
    await camera.start();
    return camera;
  }

  /** Address of a stream, without login. */
  url(mount: keyof typeof streams): string {
    return `rtsp://127.0.0.1:${this.port}${mount}`;
  }

  async start(): Promise<void> {
    const program = join(repository, 'e2e', 'cameras', 'camera.py');
    const args = [program, String(this.port), JSON.stringify(streams), ...this.login];
    this.#child = spawn('/usr/bin/python3', args, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#answers = createInterface({ input: this.#child.stdout! });
    await once(this.#answers, 'line');
  }

  /** Sets a property of the running streams. Returns the Unix time of the change in ms. */
  async set(element: 'picture' | 'size', property: string, value: string): Promise<number> {
    const answer = once(this.#answers!, 'line');
    this.#child!.stdin!.write(`${element} ${property} ${value}\n`);
    return Number((await answer)[0]);
  }

  async resize(width: number, height: number): Promise<void> {
    await this.set('size', 'caps', size(width, height));
  }

  freeze(): void {
    this.#child!.kill('SIGSTOP');
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    this.#child = undefined;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
}
