// Tests media on IPv4 and IPv6 at once. Browsers use IPv6 only on a non-loopback interface, so the test creates one.
import { execFileSync } from 'node:child_process';
import { test } from '@jest/globals';
import { freeTcpPort } from '@bloom/net/testing';
import { startNode } from '../harness/bloom-node.js';
import { browserSuite } from '../harness/stage.js';
import { callDirectly, callOver } from './relays.js';

const CABLE = 'bloom-v6';
const ADDRESS = 'fd0b:100::1';
/** Chromium tests for IPv6 by looking up its own address on the route to this one. It sends nothing there. */
const FAR_AWAY = '2001:4860:4860::8888';
const BOTH = `127.0.0.1 ${ADDRESS}`;

const ip = (...args: string[]): unknown => execFileSync('ip', args);

let tcpPort = 0;

async function nodeOnBothFamilies() {
  ip('link', 'add', CABLE, 'type', 'veth', 'peer', 'name', `${CABLE}-end`);
  for (const end of [CABLE, `${CABLE}-end`]) ip('link', 'set', end, 'up');
  ip('address', 'add', `${ADDRESS}/64`, 'dev', CABLE, 'nodad');
  ip('-6', 'route', 'replace', FAR_AWAY, 'dev', CABLE);
  tcpPort = await freeTcpPort();
  const node = await startNode({
    env: { JF_WEBRTC_TURN_IP: BOTH, JF_WEBRTC_TURN_LISTEN_IP: BOTH, JF_WEBRTC_TURN_TCP_PORT: String(tcpPort) },
  });
  const stop = async (): Promise<void> => {
    await node.stop();
    ip('link', 'delete', CABLE);
  };

  return { ...node, stop };
}

browserSuite('Media on both families', { node: nodeOnBothFamilies, needs: ['network namespaces'] }, (stage) => {
  test.each(['127.0.0.1', `[${ADDRESS}]`])('carries a call of people who reach only %s', async (address) => {
    await callOver(stage, [address, 'transport=udp'], `udp turn:${address}:`);
    await callOver(stage, [address, 'transport=tcp'], `tcp turn:${address}:${tcpPort}`);
  });

  test('carries a call without relays over IPv6 only', () => callDirectly(stage, ADDRESS));
});
