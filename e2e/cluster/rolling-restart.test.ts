// Restarts three nodes behind haproxy one after the other while calls go on, as docs/guide/upgrading.md says.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freeTcpPort } from '@bloom/net/testing';
import { afterAll, expect, test } from '@jest/globals';
import { LABELS, type Label, settings, Trio } from '../bloomctl/trio.js';
import { Person, playing } from '../client/person.js';
import { Api } from '../harness/api.js';
import { type BloomNode, startNode } from '../harness/bloom-node.js';
import { middle, promise } from '../harness/measurements.js';
import { nightly } from '../harness/needs.js';
import { browserSuite } from '../harness/stage.js';
import { PeerConnection } from '../node/support/peer-socket.js';
import { until } from './until.js';
import { receiveWebhooksAt } from './webhooks.js';

const ROUNDS = nightly ? 7 : 1;
/** Rooms besides the one in browsers, and the people in each. */
const [ROOMS, PEOPLE] = nightly ? [5, 4] : [5, 1];

/** Webhooks that say that somebody or a room came, went or changed; those about tracks may name new ids. */
const PEOPLE_OR_ROOMS = /^(room|peer)/;

const folder = mkdtempSync(join(tmpdir(), 'bloom-rolling-'));
afterAll(() => rmSync(folder, { recursive: true }));

let trio: Trio;
let balancer: ChildProcess;
let statsUrl: string;
const nodes = new Map<Label, BloomNode>();
const envs = new Map<Label, Record<string, string>>();

const HAPROXY = (port: number, stats: number): string => `
defaults
  mode http
  timeout connect 2s
  timeout client 1h
  timeout server 1h
  timeout tunnel 1h
frontend people
  bind 127.0.0.1:${port}
  default_backend nodes
frontend figures
  bind 127.0.0.1:${stats}
  stats enable
  stats uri /
backend nodes
  option httpchk GET /health/ready
  option redispatch
  default-server check inter 200ms fall 1 rise 1
${LABELS.map((label) => `  server ${label} 127.0.0.1:${envs.get(label)?.['JF_PORT']}`).join('\n')}
`;

async function clusterBehindHaproxy(): Promise<BloomNode> {
  const [port, stats] = [await freeTcpPort(), await freeTcpPort()];
  for (const label of LABELS)
    envs.set(label, {
      JF_PORT: String(await freeTcpPort()),
      JF_HOST: `127.0.0.1:${port}`,
      JF_DRAIN_MODE: 'move',
      // The 8 s without it are a matter of the machine's speed.
      JF_DRAIN_TIMEOUT: '60',
      JF_SIP_USED: 'false',
    });
  trio = await Trio.start(Object.fromEntries(envs));
  for (const label of LABELS) nodes.set(label, trio.nodes[label]);
  const config = join(folder, 'haproxy.cfg');
  writeFileSync(config, HAPROXY(port, stats));
  balancer = spawn('haproxy', ['-db', '-f', config], { stdio: 'ignore' });
  statsUrl = `http://127.0.0.1:${stats}/;csv`;
  await until('the load balancer knows all nodes', async () => (await standing()).length === LABELS.length);
  const stop = async (): Promise<void> => {
    const ended = once(balancer, 'exit');
    if (balancer.kill('SIGKILL')) await ended;
    await Promise.all([...nodes.values()].map((node) => node.stop()));
    await trio.stop();
  };
  return { ...trio.nodes.a, url: `http://127.0.0.1:${port}`, host: `127.0.0.1:${port}`, stop };
}

/** Nodes to which the load balancer sends requests. */
async function standing(): Promise<Label[]> {
  const rows = (await (await fetch(statsUrl)).text()).split('\n').map((line) => line.split(','));
  return LABELS.filter((label) => rows.some((row) => row[0] === 'nodes' && row[1] === label && row[17] === 'UP'));
}

/** A client that comes back through the load balancer whenever its websocket is closed. */
class Visitor {
  readonly closed: string[] = [];
  readonly left: Promise<void>;
  #current: PeerConnection | undefined;
  #leaves = false;

  constructor(url: string, token: string) {
    this.left = this.#stay(url, token);
  }

  get isThere(): boolean {
    return this.#current !== undefined;
  }

  leave(): void {
    this.#leaves = true;
    this.#current?.socket.close();
  }

  async #stay(url: string, token: string): Promise<void> {
    while (!this.#leaves) {
      this.#current = await until('the visitor is back', () => PeerConnection.joined(url, token, { name: 'visitor' }));
      const why = await this.#current.closed;
      this.#current = undefined;
      if (!this.#leaves) this.closed.push(why);
    }
  }
}

browserSuite(
  'A rolling restart behind a load balancer',
  { needs: ['haproxy'], node: clusterBehindHaproxy },
  (stage) => {
    const started = performance.now();
    const timeline: string[] = [];
    const note = (what: string): void => {
      timeline.push(`${((performance.now() - started) / 1_000).toFixed(1).padStart(6)} s  ${what}`);
    };
    const api = (label: Label): Api => new Api(nodes.get(label)?.url ?? '');
    const roomsOf = async (label: Label): Promise<string[]> =>
      (await api(label).request('GET', '/room')).body.data.map(({ id }: { id: string }) => id);
    const ownerOf = async (room: string): Promise<Label | undefined> => {
      for (const label of LABELS) if ((await roomsOf(label)).includes(room)) return label;
      return undefined;
    };

    /** The recipe of the guide: drain, let the load balancer notice, stop (which moves the rooms), start. */
    async function restart(label: Label): Promise<void> {
      const node = nodes.get(label) as BloomNode;
      const rooms = await roomsOf(label);
      await api(label).request('POST', '/node/drain');
      await until('the load balancer leaves it out', async () => !(await standing()).includes(label));
      note(`${label} drains, the load balancer leaves it out`);
      await node.stop(90_000);
      note(`${label} has moved ${rooms.length} rooms and ended`);
      nodes.set(label, await startNode({ env: { ...settings(label, trio.mapperPort), ...envs.get(label) } }));
      await until(
        'the cluster is complete',
        async () => (await api(label).request('GET', '/cluster')).body.data.nodes.length === 3,
      );
      await until('the load balancer uses it again', async () => (await standing()).includes(label));
      note(`${label} is back, the load balancer uses it`);
    }

    test(
      'ends no call and reports nothing about people who stay',
      async () => {
        const receiver = await receiveWebhooksAt('127.0.0.1');
        const rooms: string[] = [];
        for (let i = 0; i <= ROOMS; i += 1) rooms.push(await stage.api.createRoom({ webhookUrl: receiver.url }));
        const [call = '', ...others] = rooms;
        const enter = async (name: string): Promise<Person> => {
          const page = await stage.page('client');
          return Person.join(page, await stage.api.addPeer(call), { url: stage.node.host, name });
        };
        const [ann, bob] = [await enter('ann'), await enter('bob')];
        await ann.page.evaluate(() => window.application.publish({ colour: 'red', fps: 20 }));
        await bob.page.evaluate(() => window.application.publish({ colour: 'blue', fps: 20 }));
        await Promise.all([bob.sees(playing('red')), ann.sees(playing('blue'))]);
        const seats = others.flatMap((room) => Array.from({ length: PEOPLE }, () => room));
        const visitors: Visitor[] = [];
        for (const room of seats) visitors.push(new Visitor(stage.node.url, (await stage.api.addPeer(room)).token));
        await until('everybody is there', () => visitors.every(({ isThere }) => isThere));
        const heardOf = (type: RegExp): string[] => receiver.heard.filter((line) => type.test(line));
        await until(
          'the backend knows all of them',
          () => heardOf(/^peerMetadataUpdated/).length === visitors.length + 2,
        );
        const before = heardOf(PEOPLE_OR_ROOMS);

        const pauses: number[] = [];
        for (let round = 0; round < ROUNDS; round += 1) {
          const owner = (await ownerOf(call)) ?? 'a';
          for (const label of nightly ? LABELS : [owner]) {
            const isMoved = (await ownerOf(call)) === label;
            for (const { page } of [ann, bob]) await page.evaluate(() => window.application.resetPauses());
            await restart(label);
            if (!isMoved) continue;
            await Promise.all([bob.sees(playing('red')), ann.sees(playing('blue'))]);
            for (const person of [ann, bob]) pauses.push(await person.standstill());
            note(`the pictures of the call stood still for ${pauses.slice(-2).map(Math.round).join(' and ')} ms`);
          }
        }

        await until('everybody is back', () => visitors.every(({ isThere }) => isThere));
        process.stderr.write(`\n${timeline.join('\n')}\n`);
        const reasons = new Set(visitors.flatMap(({ closed }) => closed));
        // Visitors reach any node: one that stops may hold their websocket while their room is elsewhere.
        reasons.delete('1012 Node stopped');
        expect([...reasons]).toEqual(['1012 Room moved']);
        expect(heardOf(PEOPLE_OR_ROOMS)).toEqual(before);
        for (const room of rooms) expect((await stage.api.request('GET', `/room/${room}`)).status).toBe(200);
        promise('pause of a picture whose room moves, @bloom/client behind haproxy', middle(pauses), 10_000);

        for (const visitor of visitors) visitor.leave();
        await Promise.all(visitors.map(({ left }) => left));
        // All nodes stop together then, and would wait for one that takes the rooms.
        for (const room of rooms) await stage.api.deleteRoom(room);
        await receiver.close();
      },
      nightly ? 900_000 : 240_000,
    );
  },
);
