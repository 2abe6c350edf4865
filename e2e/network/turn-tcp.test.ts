import { test } from '@jest/globals';
import { freeTcpPort } from '@bloom/net/testing';
import { type BloomNode, startNode } from '../harness/bloom-node.js';
import { browserSuite } from '../harness/stage.js';
import { callOver } from './relays.js';
import { startTlsNode } from './tls-node.js';

let turnPort = 0;

async function nodeWithTurnTcp(): Promise<BloomNode> {
  turnPort = await freeTcpPort();
  return startNode({ env: { JF_WEBRTC_TURN_TCP_PORT: String(turnPort) } });
}

/** Starts a node that accepts only TLS, with its relay at `turnPort`. */
async function nodeWithTls(env: (port: number) => Record<string, string>): Promise<BloomNode> {
  turnPort = await freeTcpPort();
  return startTlsNode({ JF_WEBRTC_TURN_TLS_PORT: String(turnPort), ...env(turnPort) });
}

const nodeWithTurnTls = () => nodeWithTls(() => ({ JF_WEBRTC_TURN_IP: 'localhost' }));
const nodeWithOnePort = () => nodeWithTls((port) => ({ JF_PORT: String(port), JF_HOST: `localhost:${port}` }));

browserSuite('A network without UDP', { node: nodeWithTurnTcp }, (stage) => {
  test('carries a call over TURN by TCP', () =>
    callOver(stage, ['transport=tcp'], `tcp turn:127.0.0.1:${turnPort}?transport=tcp`));
});

const trusting = { needs: ['openssl'], browserFlags: ['--ignore-certificate-errors'] } as const;
for (const [title, node] of [
  ['A network that passes TLS only', nodeWithTurnTls],
  ['A network that passes one port only', nodeWithOnePort],
] as const) {
  browserSuite(title, { ...trusting, node }, (stage) => {
    test('carries a call over TURN by TLS', () =>
      callOver(stage, ['turns:'], `tls turns:localhost:${turnPort}?transport=tcp`));
  });
}
