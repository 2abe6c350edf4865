import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { freeTcpPort } from '../harness/free-ports.js';
import { type BloomNode, startNode } from '../harness/bloom-node.js';
import { makeCertificate } from '../harness/certificate.js';
import { browserSuite, type Stage } from '../harness/stage.js';
import { startProxy } from '../harness/tcp-proxy.js';
import { startProgram } from '../node/support/program.js';
import type { Peer } from '../harness/peer.js';

let turnPort = 0;

async function nodeWithTurnTcp(): Promise<BloomNode> {
  turnPort = await freeTcpPort();
  return startNode({ env: { JF_WEBRTC_TURN_TCP_PORT: String(turnPort) } });
}

/** A node that speaks TLS only, behind a proxy for the harness and the pages. */
async function nodeWithTurnTls(): Promise<BloomNode> {
  turnPort = await freeTcpPort();
  const folder = mkdtempSync(join(tmpdir(), 'bloom-turns-'));
  const certificate = makeCertificate(folder);
  const node = await startProgram({
    JF_SSL_KEY_PATH: certificate.key,
    JF_SSL_CERT_PATH: certificate.cert,
    JF_WEBRTC_TURN_IP: 'localhost',
    JF_WEBRTC_TURN_TLS_PORT: String(turnPort),
  });
  const { host, close } = await startProxy(`127.0.0.1:${node.port}`, { secure: true });
  const kill = async (): Promise<void> => {
    await close();
    await node.dispose();
    rmSync(folder, { recursive: true, force: true });
  };

  return { url: `http://${host}`, host, pid: node.child.pid ?? 0, log: node.output, stop: kill, kill };
}

/** Leaves the page only the relays whose URL has this in it, and keeps its connections for `relaysOf`. */
async function restrictRelays(peer: Peer, part: string): Promise<void> {
  await peer.page.evaluate((wanted) => {
    const connections: RTCPeerConnection[] = [];
    const isTcp = (url: string): boolean => url.includes(wanted);
    window.RTCPeerConnection = class extends RTCPeerConnection {
      constructor({ iceServers = [], ...config }: RTCConfiguration = {}) {
        super({ ...config, iceServers: iceServers.filter(({ urls }) => [urls].flat().every(isTcp)) });
        connections.push(this);
      }
    };
    Object.assign(window, { connections });
  }, part);
}

/** A call of two, each of whom uses that relay only. */
async function callOver(stage: Stage, part: string, relay: string): Promise<void> {
  const room = await stage.room();
  const [ann, bob] = await Promise.all([stage.peer(room, 'ann'), stage.peer(room, 'bob')]);
  await Promise.all([restrictRelays(ann, part), restrictRelays(bob, part)]);
  await ann.join();
  await bob.join();
  const [red, blue] = [await ann.addVideo({ colour: 'red' }), await bob.addVideo({ colour: 'blue' })];
  await Promise.all([bob.plays(red, 'red'), ann.plays(blue, 'blue')]);
  await Promise.all([bob.call('awaitFrames', red, 30), ann.call('awaitFrames', blue, 30)]);
  for (const peer of [ann, bob]) expect(new Set(await relaysOf(peer))).toEqual(new Set([relay]));
}

/** `<protocol to the relay> <url of the relay>` of each relayed candidate. */
function relaysOf(peer: Peer): Promise<string[]> {
  return peer.page.evaluate(async () => {
    const { connections } = window as unknown as { connections: RTCPeerConnection[] };
    const reports = await Promise.all(connections.map((connection) => connection.getStats()));
    return reports
      .flatMap((report) => [...report.values()] as { type: string; relayProtocol?: string; url?: string }[])
      .filter(({ type, relayProtocol }) => type === 'local-candidate' && relayProtocol !== undefined)
      .map(({ relayProtocol, url }) => `${relayProtocol} ${url}`);
  });
}

browserSuite('A network without UDP', { node: nodeWithTurnTcp }, (stage) => {
  test('carries a call over TURN by TCP', () =>
    callOver(stage, 'transport=tcp', `tcp turn:127.0.0.1:${turnPort}?transport=tcp`));
});

const trusting = { node: nodeWithTurnTls, needs: ['openssl'], browserFlags: ['--ignore-certificate-errors'] } as const;
browserSuite('A network that passes TLS only', trusting, (stage) => {
  test('carries a call over TURN by TLS', () =>
    callOver(stage, 'turns:', `tls turns:localhost:${turnPort}?transport=tcp`));
});
