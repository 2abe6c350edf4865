// Tests how soon a page learns that media does not pass, and why.
import { afterAll, expect, test } from '@jest/globals';
import { freeTcpPort } from '@bloom/net/testing';
import type { MediaState } from '@bloom/client';
import { Api } from '../harness/api.js';
import { apiToken, startNode } from '../harness/bloom-node.js';
import { type BrowserName, launchLaptop } from '../harness/laptop.js';
import { promise } from '../harness/measurements.js';
import { nightly } from '../harness/needs.js';
import { browserSuite } from '../harness/stage.js';
import { type Host, Lab, labUnavailable } from '../hosts/lab.js';

/** The state becomes `failed` after ten seconds without a connection; the rest is signalling on a busy machine. */
const EARLIEST_MS = 9_000;
const LATEST_MS = 12_000;

// The suite skips itself, loudly, without namespaces.
const lab = labUnavailable() === undefined ? await Lab.open() : undefined;
const own = lab?.ownAddress ?? '';
/** An address on the network that no machine has. */
const NOBODY = own.replace(/\d+$/, '200');
afterAll(() => lab?.close());

const withoutUdp = (host: Host): void => host.filterSent('-p', 'udp', '-j', 'DROP');
const relayPort = await freeTcpPort();

interface Case {
  readonly title: string;
  readonly browsers: readonly BrowserName[];
  /** Settings besides the usual ones. */
  readonly env: Readonly<Record<string, string>>;
  /** What is between the browser and the node. */
  wall(host: Host): void;
  /** The page has a wrong password for the relay. */
  readonly forged?: true;
  readonly problem: MediaState['problem'];
}

/** By day one of them, because each case takes ten seconds. */
const BOTH: readonly BrowserName[] = nightly ? ['Chromium', 'Firefox'] : ['Chromium'];
const CASES: readonly Case[] = [
  {
    title: 'a node that announces loopback alone',
    // Chromium uses loopback.
    browsers: ['Firefox'],
    env: { JF_WEBRTC_TURN_IP: '127.0.0.1', JF_WEBRTC_TURN_LISTEN_IP: '127.0.0.1' },
    wall: () => undefined,
    problem: 'NO_CANDIDATES',
  },
  {
    title: 'a node that announces a wrong address',
    browsers: BOTH,
    env: { JF_WEBRTC_TURN_IP: NOBODY },
    wall: () => undefined,
    problem: null,
  },
  {
    title: 'a firewall that drops UDP, without a relay',
    browsers: BOTH,
    env: {},
    wall: withoutUdp,
    problem: null,
  },
  {
    title: 'a firewall that drops UDP, with a relay that it resets',
    browsers: BOTH,
    env: { JF_WEBRTC_TURN_TCP_PORT: String(relayPort) },
    wall: (host) => {
      withoutUdp(host);
      host.filterSent('-p', 'tcp', '--dport', String(relayPort), '-j', 'REJECT', '--reject-with', 'tcp-reset');
    },
    problem: null,
  },
  {
    title: 'a firewall that drops UDP, with a relay that refuses the password',
    browsers: BOTH,
    env: { JF_WEBRTC_TURN_TCP_PORT: String(relayPort) },
    wall: withoutUdp,
    forged: true,
    problem: 'RELAY_REFUSED',
  },
];

function forgePasswords(): void {
  const { setConfiguration } = RTCPeerConnection.prototype;
  RTCPeerConnection.prototype.setConfiguration = function forged(configuration = {}) {
    const iceServers = configuration.iceServers?.map((server) => ({ ...server, credential: 'wrong' })) ?? [];
    setConfiguration.call(this, { ...configuration, iceServers });
  };
}

const ENV = { JF_IP: '0.0.0.0', JF_SERVER_API_TOKEN: apiToken, JF_WEBRTC_TURN_IP: own, JF_WEBRTC_TURN_LISTEN_IP: own };
const options = { needs: ['network namespaces', 'iptables', 'firefox'], pagesAt: own } as const;

browserSuite('A page', options, (stage) => {
  const tries = CASES.flatMap((each) => each.browsers.map((browser) => ({ ...each, browser })));
  test.each(tries)(
    'says in $browser within 9 to 12 s that media fails at $title',
    async ({ title, browser, env, wall, forged, problem }) => {
      const host = lab?.addHost(`person-${lab.hosts.length}.lab.test`);
      if (host === undefined) throw new Error('the lab is not open');
      wall(host);
      const commandOf = (program: string): readonly string[] => host.commandOf(program);
      const [node, laptop] = await Promise.all([
        startNode({ env: { ...ENV, ...env } }),
        launchLaptop(browser, {
          commandOf,
          trusted: new URL(stage.urlOf('client')),
          preferences: { 'media.peerconnection.ice.loopback': false },
        }),
      ]);
      try {
        const api = new Api(node.url);
        const { token } = await api.addPeer(await api.createRoom());
        const page = await laptop.open(stage.urlOf('client'));
        if (forged) await page.evaluate(forgePasswords);
        const url = node.host.replace('127.0.0.1', own);
        const failed = await page.evaluate(
          async (seat) => {
            const { client, connect, publish } = window.application;
            const begun = performance.now();
            const states: string[] = [];
            const end = new Promise<MediaState>((resolve) => {
              client.on('mediaStateChanged', (media) => {
                states.push(media.state);
                if (media.state === 'failed') resolve(media);
              });
            });
            await connect(seat);
            await publish({ colour: 'red', fps: 10 });
            const { problem: found, reason } = await end;
            return { ms: performance.now() - begun, states, problem: found, reason };
          },
          { url, token },
        );
        expect(failed).toMatchObject({ states: ['connecting', 'failed'], problem });
        expect(failed.reason).toMatch(/\w+\./);
        expect(failed.ms).toBeGreaterThan(EARLIEST_MS);
        promise(`${browser}: ${title}`, failed.ms, LATEST_MS);
      } finally {
        await laptop.close();
        await node.stop();
      }
    },
    60_000,
  );
});
