import { expect, test } from '@jest/globals';
import { freeTcpPort } from '../harness/free-ports.js';
import { type BloomNode, startNode } from '../harness/bloom-node.js';
import { browserSuite } from '../harness/stage.js';
import type { Peer } from '../harness/peer.js';

let turnPort = 0;

async function nodeWithTurnTcp(): Promise<BloomNode> {
  turnPort = await freeTcpPort();
  return startNode({ env: { JF_WEBRTC_TURN_TCP_PORT: String(turnPort) } });
}

/** Leaves the page only those relays that a network without UDP can reach, and keeps its connections for `relaysOf`. */
async function blockUdp(peer: Peer): Promise<void> {
  await peer.page.evaluate(() => {
    const connections: RTCPeerConnection[] = [];
    const isTcp = (url: string): boolean => url.includes('transport=tcp');
    window.RTCPeerConnection = class extends RTCPeerConnection {
      constructor({ iceServers = [], ...config }: RTCConfiguration = {}) {
        super({ ...config, iceServers: iceServers.filter(({ urls }) => [urls].flat().every(isTcp)) });
        connections.push(this);
      }
    };
    Object.assign(window, { connections });
  });
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
  test('carries a call over TURN by TCP', async () => {
    const room = await stage.room();
    const [ann, bob] = await Promise.all([stage.peer(room, 'ann'), stage.peer(room, 'bob')]);
    await Promise.all([blockUdp(ann), blockUdp(bob)]);
    await ann.join();
    await bob.join();
    const [red, blue] = [await ann.addVideo({ colour: 'red' }), await bob.addVideo({ colour: 'blue' })];
    await Promise.all([bob.plays(red, 'red'), ann.plays(blue, 'blue')]);
    await Promise.all([bob.call('awaitFrames', red, 30), ann.call('awaitFrames', blue, 30)]);

    const relay = `tcp turn:127.0.0.1:${turnPort}?transport=tcp`;
    for (const peer of [ann, bob]) expect(new Set(await relaysOf(peer))).toEqual(new Set([relay]));
  });
});
