import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { connected, gathered, type Publisher } from '@bloom/participant';
import type { RTCPeerConnection } from 'werift';
import WebSocket from 'ws';
import { address } from '../private-network.js';
import { ServerProcess } from '../process.js';
import type { ServerKind } from './server.js';

/** Configuration installed by the package, which contains the websocket port. */
const shipped = '/etc/janus/janus.jcfg';
const port = 8188;
const room = 1;

/**
 * Debian's Janus with its videoroom plugin and the package's configuration. The network namespace keeps its ports
 * separate. `eventLoops`: 0 means one thread per peer, as shipped; a larger number adds that one setting.
 */
export function janus(eventLoops: number): ServerKind {
  const name = eventLoops === 0 ? 'janus' : `janus (event_loops=${eventLoops})`;
  return {
    name,
    unavailable: () => (existsSync(shipped) ? undefined : 'janus is not installed: sudo apt-get install janus'),
    async start(kind) {
      const folder = mkdtempSync(join(tmpdir(), 'bloom-bench-janus-'));
      const settings = readFileSync(shipped, 'utf8');
      const config = join(folder, 'janus.jcfg');
      writeFileSync(
        config,
        eventLoops === 0 ? settings : settings.replace('general: {', `general: {\n\tevent_loops = ${eventLoops}`),
      );
      const server = new ServerProcess('janus', ['-C', config]);
      const api = await JanusApi.open(server);
      const admin = await api.attach();
      await admin.request({
        request: 'create',
        room,
        publishers: 4,
        bitrate: 0,
        videocodec: 'vp8',
        audiocodec: 'opus',
        audiolevel_event: false,
        transport_wide_cc_ext: true,
        notify_joining: false,
      });
      let feed: unknown;
      return {
        name,
        pid: server.pid,
        async publish(pc: RTCPeerConnection, publisher: Publisher) {
          const handle = await api.attach();
          const joined = await handle.request({ request: 'join', ptype: 'publisher', room, display: 'load' });
          feed = joined.data.id;
          pc.addTransceiver(publisher.track, { direction: 'sendonly' });
          await pc.setLocalDescription(await pc.createOffer());
          await gathered(pc);
          const answered = await handle.request(
            { request: 'configure', audio: kind === 'audio', video: kind === 'video' },
            jsep(pc),
          );
          await pc.setRemoteDescription(answered.jsep as never);
          await connected(pc, 'janus publisher');
        },
        async subscribe(pc: RTCPeerConnection) {
          const handle = await api.attach();
          const offered = await handle.request({ request: 'join', ptype: 'subscriber', room, streams: [{ feed }] });
          await pc.setRemoteDescription(offered.jsep as never);
          await pc.setLocalDescription(await pc.createAnswer());
          await gathered(pc);
          await handle.request({ request: 'start' }, jsep(pc));
          await connected(pc, 'janus subscriber');
        },
        async close() {
          api.close();
          await server.stop();
          rmSync(folder, { recursive: true, force: true });
        },
      };
    },
  };
}

const jsep = (pc: RTCPeerConnection) => ({
  type: pc.localDescription?.type,
  sdp: pc.localDescription?.sdp,
  trickle: false,
});

interface Answer {
  data: Record<string, unknown>;
  jsep?: unknown;
}

/** The part of the Janus websocket API that this benchmark needs. */
class JanusApi {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<string, { done: (message: JanusMessage) => void; event: boolean }>();
  #session = 0;
  readonly #keepAlive: NodeJS.Timeout;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (data: Buffer) => this.#receive(JSON.parse(data.toString()) as JanusMessage));
    this.#keepAlive = setInterval(() => void this.#send({ janus: 'keepalive', session_id: this.#session }), 20_000);
  }

  static async open(server: ServerProcess): Promise<JanusApi> {
    let socket: WebSocket | undefined;
    await server.until(async () => {
      const attempt = new WebSocket(`ws://${address}:${port}`, 'janus-protocol');
      await new Promise((done, failed) => {
        attempt.once('open', done);
        attempt.once('error', failed);
      });
      socket = attempt;
      return true;
    });
    const api = new JanusApi(socket as WebSocket);
    const created = await api.#send({ janus: 'create' });
    api.#session = (created.data as { id: number }).id;
    return api;
  }

  async attach() {
    const attached = await this.#send({ janus: 'attach', session_id: this.#session, plugin: 'janus.plugin.videoroom' });
    const handle = (attached.data as { id: number }).id;
    return {
      request: async (body: Record<string, unknown>, description?: unknown): Promise<Answer> => {
        const message = await this.#send(
          {
            janus: 'message',
            session_id: this.#session,
            handle_id: handle,
            body,
            ...(description ? { jsep: description } : {}),
          },
          body.request !== 'create',
        );
        const data = (message.plugindata?.data ?? {}) as Record<string, unknown>;
        if (data.error) throw new Error(`janus: ${JSON.stringify(data)}`);
        return { data, jsep: message.jsep };
      },
    };
  }

  close(): void {
    clearInterval(this.#keepAlive);
    this.#socket.terminate();
  }

  /** With `event`, the real answer follows an acknowledgement. */
  #send(message: Record<string, unknown>, event = false): Promise<JanusMessage> {
    const transaction = randomUUID();
    const answer = new Promise<JanusMessage>((done) => this.#waiting.set(transaction, { done, event }));
    this.#socket.send(JSON.stringify({ ...message, transaction }));
    return answer.then((reply) => {
      if (reply.janus === 'error') throw new Error(`janus: ${JSON.stringify(reply)}`);
      return reply;
    });
  }

  #receive(message: JanusMessage): void {
    const waiting = this.#waiting.get(message.transaction ?? '');
    if (!waiting || (waiting.event && message.janus === 'ack')) return;
    this.#waiting.delete(message.transaction ?? '');
    waiting.done(message);
  }
}

interface JanusMessage {
  janus: string;
  transaction?: string;
  data?: unknown;
  plugindata?: { data?: unknown };
  jsep?: unknown;
}
