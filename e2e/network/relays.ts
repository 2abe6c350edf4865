// Calls over chosen relays of the node, or without them.
import { expect } from '@jest/globals';
import type { Peer } from '../harness/peer.js';
import type { Stage } from '../harness/stage.js';

/** Restricts the page to relays whose URL has all parts, and keeps its connections for `relaysOf`. */
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

/** Removes all relays from the page, and all of the node's candidates except those with the address. */
async function restrictToAddress(peer: Peer, address: string): Promise<void> {
  await peer.page.evaluate((wanted) => {
    const connections: RTCPeerConnection[] = [];
    window.RTCPeerConnection = class extends RTCPeerConnection {
      constructor(config?: RTCConfiguration) {
        super({ ...config, iceServers: [], iceTransportPolicy: 'all' });
        connections.push(this);
      }
      override async addIceCandidate(candidate?: RTCIceCandidateInit | null): Promise<void> {
        if (candidate?.candidate?.includes(` ${wanted} `)) await super.addIceCandidate(candidate);
      }
      override setRemoteDescription({ type, sdp = '' }: RTCSessionDescriptionInit): Promise<void> {
        const lines = sdp
          .split('\r\n')
          .filter((line) => !line.startsWith('a=candidate:') || line.includes(` ${wanted} `));
        return super.setRemoteDescription({ type, sdp: lines.join('\r\n') });
      }
    };
    Object.assign(window, { connections });
  }, address);
}

/** Runs a call of two peers without relays, who use only the node's candidates with the address. */
export async function callDirectly(stage: Stage, address: string): Promise<{ ann: Peer; bob: Peer }> {
  const { ann, bob } = await callOf(stage, (peer) => restrictToAddress(peer, address));
  for (const peer of [ann, bob]) expect(await addressesInUse(peer)).toEqual([`host ${address}`]);
  return { ann, bob };
}

/**
 * Runs a call of two peers who use only relays whose URL has all parts; each entry of `relaysOf` must contain `relay`.
 */
export async function callOver(stage: Stage, parts: readonly string[], relay: string): Promise<void> {
  const { ann, bob } = await callOf(stage, (peer) => restrictRelays(peer, parts));
  for (const peer of [ann, bob]) {
    const used = await relaysOf(peer);
    expect(used.length).toBeGreaterThan(0);
    for (const each of used) expect(each).toContain(relay);
  }
}

/** Connects two peers, prepared before they join, who see each other. */
async function callOf(stage: Stage, prepare: (peer: Peer) => Promise<void>): Promise<{ ann: Peer; bob: Peer }> {
  const room = await stage.room();
  const [ann, bob] = await Promise.all([stage.peer(room, 'ann'), stage.peer(room, 'bob')]);
  await Promise.all([prepare(ann), prepare(bob)]);
  await ann.join();
  await bob.join();
  const [red, blue] = [await ann.addVideo({ colour: 'red' }), await bob.addVideo({ colour: 'blue' })];
  await Promise.all([bob.plays(red, 'red'), ann.plays(blue, 'blue')]);
  await Promise.all([bob.call('awaitFrames', red, 30), ann.call('awaitFrames', blue, 30)]);
  return { ann, bob };
}

/** Returns `<type> <address>` of the node's candidates in nominated pairs, without duplicates. */
function addressesInUse(peer: Peer): Promise<string[]> {
  return peer.page.evaluate(async () => {
    const { connections } = window as unknown as { connections: RTCPeerConnection[] };
    const reports = await Promise.all(connections.map((connection) => connection.getStats()));
    type Entry = {
      type: string;
      nominated?: boolean;
      remoteCandidateId?: string;
      candidateType?: string;
      address?: string;
    };
    const used = reports.flatMap((report) =>
      ([...report.values()] as Entry[])
        .filter(({ type, nominated }) => type === 'candidate-pair' && nominated === true)
        .map(({ remoteCandidateId = '' }) => report.get(remoteCandidateId) as Entry),
    );
    return [...new Set(used.map(({ candidateType, address }) => `${candidateType} ${address}`))];
  });
}

/** Returns `<protocol to the relay> <url of the relay>` of each relayed candidate. */
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
