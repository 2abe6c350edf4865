// Calls over chosen relays of the node.
import { expect } from '@jest/globals';
import type { Peer } from '../harness/peer.js';
import type { Stage } from '../harness/stage.js';

/** Leaves the page only the relays whose URL has all parts, and keeps its connections for `relaysOf`. */
async function restrictRelays(peer: Peer, parts: readonly string[]): Promise<void> {
  await peer.page.evaluate((wanted) => {
    const connections: RTCPeerConnection[] = [];
    const isWanted = (url: string): boolean => wanted.every((part) => url.includes(part));
    window.RTCPeerConnection = class extends RTCPeerConnection {
      constructor({ iceServers = [], ...config }: RTCConfiguration = {}) {
        super({ ...config, iceServers: iceServers.filter(({ urls }) => [urls].flat().every(isWanted)) });
        connections.push(this);
      }
    };
    Object.assign(window, { connections });
  }, parts);
}

/** A call of two, each of whom uses only the relays whose URL has all parts; `relay` is how `relaysOf` starts. */
export async function callOver(stage: Stage, parts: readonly string[], relay: string): Promise<void> {
  const room = await stage.room();
  const [ann, bob] = await Promise.all([stage.peer(room, 'ann'), stage.peer(room, 'bob')]);
  await Promise.all([restrictRelays(ann, parts), restrictRelays(bob, parts)]);
  await ann.join();
  await bob.join();
  const [red, blue] = [await ann.addVideo({ colour: 'red' }), await bob.addVideo({ colour: 'blue' })];
  await Promise.all([bob.plays(red, 'red'), ann.plays(blue, 'blue')]);
  await Promise.all([bob.call('awaitFrames', red, 30), ann.call('awaitFrames', blue, 30)]);
  for (const peer of [ann, bob]) {
    const used = await relaysOf(peer);
    expect(used.length).toBeGreaterThan(0);
    for (const each of used) expect(each).toContain(relay);
  }
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
