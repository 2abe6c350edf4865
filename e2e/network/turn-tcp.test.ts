import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from '@jest/globals';
import { freeTcpPort } from '@bloom/net/testing';
import { type BloomNode, startNode } from '../harness/bloom-node.js';
import { makeCertificate } from '../harness/certificate.js';
import { browserSuite } from '../harness/stage.js';
import { startProxy } from '../harness/tcp-proxy.js';
import { startProgram } from '../node/support/program.js';
import { callOver } from './relays.js';

let turnPort = 0;

async function nodeWithTurnTcp(): Promise<BloomNode> {
  turnPort = await freeTcpPort();
  return startNode({ env: { JF_WEBRTC_TURN_TCP_PORT: String(turnPort) } });
}

/** Starts a node that only accepts TLS, behind a proxy for the harness and the pages. */
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

browserSuite('A network without UDP', { node: nodeWithTurnTcp }, (stage) => {
  test('carries a call over TURN by TCP', () =>
    callOver(stage, ['transport=tcp'], `tcp turn:127.0.0.1:${turnPort}?transport=tcp`));
});

const trusting = { node: nodeWithTurnTls, needs: ['openssl'], browserFlags: ['--ignore-certificate-errors'] } as const;
browserSuite('A network that passes TLS only', trusting, (stage) => {
  test('carries a call over TURN by TLS', () =>
    callOver(stage, ['turns:'], `tls turns:localhost:${turnPort}?transport=tcp`));
});
