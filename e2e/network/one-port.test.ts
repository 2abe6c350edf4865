// Tests calls of people whose network allows little: browsers on separate hosts, behind a firewall.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { connect } from 'node:tls';
import { afterAll, expect, test } from '@jest/globals';
import { freeTcpPort } from '@bloom/net/testing';
import { Person, playing } from '../client/person.js';
import { until } from '../cluster/until.js';
import { apiToken, type BloomNode } from '../harness/bloom-node.js';
import { type BrowserName, type Laptop, launchLaptop } from '../harness/laptop.js';
import { promise } from '../harness/measurements.js';
import { nightly } from '../harness/needs.js';
import { browserSuite, type Stage } from '../harness/stage.js';
import type { PictureOptions } from '../page/driver-api.js';
import { type Host, Lab, labUnavailable, OWN_NAME } from '../hosts/lab.js';
import { startTlsNode } from './tls-node.js';

const BROWSERS: readonly BrowserName[] = ['Chromium', 'Firefox'];
/** For what the network and the node decide, more than the browser: both by night only. */
const BY_DAY = nightly ? BROWSERS : BROWSERS.slice(0, 1);
const JOINS = 20;
/** How long senders have to find the rate that gets through, and how long pictures then have to continue. */
const SETTLE_MS = 10_000;
const WATCH_MS = 8_000;

// The suites skip themselves, loudly, without namespaces.
const lab = labUnavailable() === undefined ? await Lab.open() : undefined;
const own = lab?.ownAddress ?? '';
/** Pages come from another address of the same machine, so that they can use port 443 too. */
const pages = lab?.addOwnAddress() ?? '';
/** An address on the network that no machine has. */
const NOBODY = own.replace(/\d+$/, '200');
afterAll(() => lab?.close());

const HTTPS = { JF_IP: own, JF_PORT: '443', JF_HOST: OWN_NAME, JF_SERVER_API_TOKEN: apiToken };
/** One port for HTTPS, websockets and media over TLS. Firefox takes relays over TLS by name only. */
const ONE_PORT = {
  ...HTTPS,
  JF_WEBRTC_TURN_TLS_PORT: '443',
  JF_WEBRTC_TURN_IP: own,
  JF_WEBRTC_TURN_LISTEN_IP: own,
};
const options = { needs: ['network namespaces', 'iptables', 'openssl', 'firefox'], pagesAt: `${pages}:443` } as const;

/** Lets out nothing but TCP 443 and queries to the network's name server. Everything else is dropped silently. */
function passOnly443(host: Host): void {
  host.filterSent('-p', 'udp', '--dport', '53', '-j', 'ACCEPT');
  host.filterSent('-p', 'udp', '-j', 'DROP');
  host.filterSent('-p', 'tcp', '!', '--dport', '443', '-j', 'DROP');
}

/** Matches what exceeds 480 kbit/s of UDP, less than two noisy pictures want. */
const OVER_THE_RATE = '-p udp -m hashlimit --hashlimit-above 60kb/s --hashlimit-burst 60kb'.split(' ');

let hosts = 0;
/** Starts a browser behind a firewall. */
async function behind(stage: Stage, browser: BrowserName, wall: (host: Host) => void): Promise<Laptop> {
  const host = lab?.addHost(`person-${(hosts += 1)}.lab.test`);
  if (host === undefined) throw new Error('the lab is not open');
  wall(host);
  const commandOf = (program: string): readonly string[] => host.commandOf(program);
  // Firefox would wait for somebody to answer its question about the camera.
  const preferences = { 'media.navigator.permission.disabled': true };
  return launchLaptop(browser, { commandOf, trusted: new URL(stage.urlOf('client')), trusting: true, preferences });
}

/** Joins, and returns the time of the page at which it began. */
async function enter(stage: Stage, laptop: Laptop, room: string): Promise<{ person: Person; begun: number }> {
  const page = await laptop.open(stage.urlOf('client'));
  const peer = await stage.api.addPeer(room);
  const begun = await page.evaluate(() => performance.timeOrigin + performance.now());
  return { person: await Person.join(page, peer, { url: `wss://${OWN_NAME}`, name: 'a person' }), begun };
}

const pathOf = ({ page }: Person): Promise<string | null> => page.evaluate(() => window.application.client.media.path);

/** Two people publish and see each other. */
async function callBehind(
  stage: Stage,
  laptop: Laptop,
  picture: Partial<PictureOptions> = {},
): Promise<{ ann: Person; bob: Person; room: string }> {
  const room = await stage.room();
  const [{ person: ann }, { person: bob }] = [await enter(stage, laptop, room), await enter(stage, laptop, room)];
  const publish = ({ page }: Person, colour: 'red' | 'blue'): Promise<number> =>
    page.evaluate((options) => window.application.publish(options), { ...picture, colour, fps: 20 });
  await publish(ann, 'red');
  await publish(bob, 'blue');
  await Promise.all([bob.sees(playing('red')), ann.sees(playing('blue'))]);
  return { ann, bob, room };
}

const percentile95 = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.ceil(values.length * 0.95) - 1] ?? Number.NaN;

browserSuite(
  'A network that passes TCP 443 only',
  { ...options, node: () => startTlsNode(ONE_PORT, `${own}:443`) },
  (stage) => {
    test.each(BY_DAY)(
      'lets people join within 2 s in %s',
      async (browser) => {
        const laptop = await behind(stage, browser, passOnly443);
        try {
          const { ann, bob, room } = await callBehind(stage, laptop);
          expect([await pathOf(ann), await pathOf(bob)]).toEqual(['relay-tls', 'relay-tls']);
          await bob.page.close();
          const joins: number[] = [];
          for (let i = 0; i < JOINS; i += 1) {
            const { person, begun } = await enter(stage, laptop, room);
            const [track] = await person.sees(playing('red'));
            joins.push((track?.firstFrameAt ?? Number.NaN) - begun);
            await person.page.close();
          }
          promise(`first picture through TCP 443 in ${browser}, p95 of ${JOINS}`, percentile95(joins), 2_000);
        } finally {
          await laptop.close();
        }
      },
      180_000,
    );

    test.each(BY_DAY)(
      'is told by the check page in %s that calls work over TLS, and what to ask for',
      async (browser) => {
        const laptop = await behind(stage, browser, passOnly443);
        try {
          const room = await stage.room();
          const { body } = await stage.api.request('POST', `/room/${room}/invitation`);
          const page = await laptop.open(`https://${OWN_NAME}/#/check&invitation=${body.data.token}`);
          await page.waitForFunction(() => {
            const buttons = [...document.querySelectorAll('button')];
            const start = buttons.find(({ innerText }) => innerText.trim() === 'Start the check');
            start?.click();
            return start !== undefined;
          });
          await page.waitForFunction(() => document.querySelector('pre') !== null);
          const text = await page.evaluate(() => document.querySelector('pre')?.textContent ?? '');
          expect(text).toMatch(/^Calls work from this network over TLS/m);
          expect(text).toMatch(/^FAIL UDP: No packets pass over UDP/m);
          expect(text).toContain(`Ask the administrator of the network to let UDP pass to ${own}, port `);
          expect(text).toMatch(/^ok {3}TLS: .* \(\d+ ms\)$/m);
        } finally {
          await laptop.close();
        }
      },
      60_000,
    );
  },
);

/**
 * Opens many connections to the port and abandons each at a different point: before TLS, before the first byte, in a
 * header.
 */
const CROWD = `
const [net, tls] = [require('node:net'), require('node:tls')];
const at = { host: '${own}', port: 443, rejectUnauthorized: false };
const open = (count, connect) => Array.from({ length: count }, () => new Promise((resolve) => {
  const socket = connect(resolve);
  socket.on('error', resolve).on('close', resolve);
}));
const halves = [Buffer.alloc(0), Buffer.from('000300002112a4', 'hex'), Buffer.from('GET / HTTP/1.1\\r\\nHost: ')];
Promise.all([
  ...open(1000, (resolve) => net.connect(at, resolve)),
  ...halves.flatMap((half) => open(1000, (resolve) => {
    const socket = tls.connect(at, () => socket.write(half, resolve));
    return socket;
  })),
]).then(() => console.log('crowded'));
setInterval(() => undefined, 1000);
`;

browserSuite('One port for everything', { ...options, node: () => startTlsNode(ONE_PORT, `${own}:443`) }, (stage) => {
  test('lets people join beside thousands of connections from their address that send nothing or fragments', async () => {
    const host = lab?.addHost('crowd.lab.test');
    if (host === undefined) throw new Error('the lab is not open');
    passOnly443(host);
    const commandOf = (program: string): readonly string[] => host.commandOf(program);
    const laptop = await launchLaptop('Chromium', {
      commandOf,
      trusted: new URL(stage.urlOf('client')),
      trusting: true,
    });
    const crowd = host.start(process.execPath, ['-e', CROWD]);
    try {
      await once(crowd.stdout as Readable, 'data');
      await until('the refusals are logged', () =>
        /http\.connection_refused.*connections without a request/.test(stage.node.log()),
      );
      const { ann, bob } = await callBehind(stage, laptop);
      expect([await pathOf(ann), await pathOf(bob)]).toEqual(['relay-tls', 'relay-tls']);
    } finally {
      await laptop.close();
      const ended = once(crowd, 'exit');
      if (crowd.kill('SIGKILL')) await ended;
    }
  });
});

/** Chromium uses port 443 of public addresses only. This one is for benchmarks, and counts as public. */
const PUBLIC = '198.18.77.1';

async function nodeAtUdp443(): Promise<BloomNode> {
  execFileSync('ip', ['address', 'add', `${PUBLIC}/32`, 'dev', 'lo']);
  const udp = { JF_WEBRTC_TURN_PORT_RANGE: '443-443', JF_MEDIA_WORKERS: '1' };
  const addresses = { JF_WEBRTC_TURN_IP: PUBLIC, JF_WEBRTC_TURN_LISTEN_IP: PUBLIC };
  const node = await startTlsNode({ ...HTTPS, ...udp, ...addresses }, `${own}:443`);
  const stop = async (): Promise<void> => {
    await node.stop();
    execFileSync('ip', ['address', 'delete', `${PUBLIC}/32`, 'dev', 'lo']);
  };
  return { ...node, stop };
}

browserSuite('A network that passes port 443 of TCP and UDP', { ...options, node: nodeAtUdp443 }, (stage) => {
  test.each(BROWSERS)('carries a call in %s over UDP', async (browser) => {
    const laptop = await behind(stage, browser, (host) => {
      const [command = '', ...args] = host.commandOf('ip');
      execFileSync(command, [...args, 'route', 'add', PUBLIC, 'via', own]);
      host.filterSent('-p', 'udp', '--dport', '443', '-j', 'ACCEPT');
      passOnly443(host);
    });
    try {
      const { ann, bob } = await callBehind(stage, laptop);
      expect([await pathOf(ann), await pathOf(bob)]).toEqual(['udp', 'udp']);
    } finally {
      await laptop.close();
    }
  });
});

browserSuite(
  'A network that limits the rate of UDP',
  { ...options, node: () => startTlsNode(ONE_PORT, `${own}:443`) },
  (stage) => {
    test.each(BY_DAY)(
      'carries a call in %s, whose pictures continue',
      async (browser) => {
        const laptop = await behind(stage, browser, (host) => {
          host.filterSent(...OVER_THE_RATE, '--hashlimit-name', 'sent', '-j', 'DROP');
          host.filterReceived(...OVER_THE_RATE, '--hashlimit-name', 'received', '-j', 'DROP');
        });
        try {
          const { ann, bob } = await callBehind(stage, laptop, { width: 640, height: 480, noisy: true });
          await ann.page.waitForTimeout(SETTLE_MS);
          const seen = (person: Person) => person.sees(([track]) => track !== undefined);
          const before = await Promise.all([seen(ann), seen(bob)]);
          await ann.page.waitForTimeout(WATCH_MS);
          const after = await Promise.all([seen(ann), seen(bob)]);
          const frames = after.map(([track], i) => (track?.frames ?? 0) - (before[i]?.[0]?.frames ?? 0));
          expect(Math.min(...frames)).toBeGreaterThan(WATCH_MS / 1_000);
        } finally {
          await laptop.close();
        }
      },
      60_000,
    );
  },
);

const wrong = { ...ONE_PORT, JF_WEBRTC_TURN_IP: NOBODY };
browserSuite('A wrong JF_WEBRTC_TURN_IP', { ...options, node: () => startTlsNode(wrong, `${own}:443`) }, (stage) => {
  test.each(BROWSERS)(
    'does not lock people of %s out: media arrives through the port of HTTPS',
    async (browser) => {
      const laptop = await behind(stage, browser, () => undefined);
      try {
        const { ann, bob } = await callBehind(stage, laptop);
        expect([await pathOf(ann), await pathOf(bob)]).toEqual(['relay-tls', 'relay-tls']);
      } finally {
        await laptop.close();
      }
    },
    60_000,
  );
});

let balancer: ChildProcess | undefined;
const folder = mkdtempSync(join(tmpdir(), 'bloom-haproxy-'));
afterAll(() => rmSync(folder, { recursive: true }));

async function nodeBehindHaproxy(): Promise<BloomNode> {
  const port = await freeTcpPort();
  const config = `
defaults
  mode tcp
  timeout connect 5s
  timeout client 1h
  timeout server 1h
listen tls
  bind ${own}:443
  server bloom 127.0.0.1:${port} send-proxy-v2
`;
  writeFileSync(join(folder, 'haproxy.cfg'), config);
  const child = spawn('haproxy', ['-db', '-f', join(folder, 'haproxy.cfg')], { stdio: 'ignore' });
  balancer = child;
  const env = {
    ...ONE_PORT,
    JF_IP: '127.0.0.1',
    JF_PORT: String(port),
    JF_WEBRTC_TURN_TLS_PORT: String(port),
    JF_WEBRTC_TURN_LISTEN_IP: '0.0.0.0',
    JF_PROXY_PROTOCOL: 'true',
    JF_TRUSTED_PROXIES: '127.0.0.1',
    JF_CHECK_ORIGIN: `//${pages}`,
  };
  const node = await startTlsNode(env, `${own}:443`);
  const stop = async (): Promise<void> => {
    await node.stop();
    const ended = once(child, 'exit');
    if (child.kill('SIGKILL')) await ended;
  };
  return { ...node, stop };
}

browserSuite(
  'A node behind a load balancer',
  { ...options, needs: [...options.needs, 'haproxy'], node: nodeBehindHaproxy },
  (stage) => {
    test.each(BY_DAY)(
      'carries the calls of people in %s whose network passes only TCP 443',
      async (browser) => {
        const laptop = await behind(stage, browser, passOnly443);
        try {
          const { ann, bob } = await callBehind(stage, laptop);
          expect([await pathOf(ann), await pathOf(bob)]).toEqual(['relay-tls', 'relay-tls']);
        } finally {
          await laptop.close();
        }
      },
      60_000,
    );

    test('announces the port of the load balancer instead of its own', () => {
      expect(stage.node.log()).toContain(`tls=${OWN_NAME}:443`);
    });

    test("knows its clients' addresses from the PROXY protocol", async () => {
      expect(balancer?.exitCode).toBeNull();
      // The types of `tls` lack `localAddress`, which reaches `net`.
      const from = { host: own, port: 443, localAddress: pages };
      const socket = connect({ ...from, rejectUnauthorized: false });
      socket.write(
        'GET /socket/peer/websocket HTTP/1.1\r\nHost: x\r\nOrigin: https://elsewhere.example\r\n' +
          'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n' +
          `Sec-WebSocket-Key: ${Buffer.alloc(16).toString('base64')}\r\n\r\n`,
      );
      const [answer] = (await once(socket, 'data')) as [Buffer];
      socket.destroy();
      expect(answer.toString()).toMatch(/^HTTP\/1\.1 403 /);
      const refused = /websocket\.origin_refused.* address=(\S+)/;
      const [, address] = await until('the refusal is logged', () => refused.exec(stage.node.log()));
      expect(address).toBe(pages);
    });
  },
);
