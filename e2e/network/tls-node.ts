// A node that accepts only TLS, and a proxy without TLS for the harness.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BloomNode } from '../harness/bloom-node.js';
import { makeCertificate } from '../harness/processes.js';
import { openProxy } from '../harness/tcp-proxy.js';
import { startProgram } from '../node/support/program.js';

/** Starts the node. `at`: where clients reach it, `host:port`, if not at its own address. */
export async function startTlsNode(env: Readonly<Record<string, string>>, at?: string): Promise<BloomNode> {
  const folder = mkdtempSync(join(tmpdir(), 'bloom-tls-'));
  const certificate = makeCertificate(folder);
  const node = await startProgram({ JF_SSL_KEY_PATH: certificate.key, JF_SSL_CERT_PATH: certificate.cert, ...env });
  const { host, close } = await openProxy(at ?? `127.0.0.1:${env['JF_PORT'] ?? node.port}`, { secure: true });
  const kill = async (): Promise<void> => {
    await close();
    await node.dispose();
    rmSync(folder, { recursive: true, force: true });
  };

  return { url: `http://${host}`, host, pid: node.child.pid ?? 0, log: node.output, stop: kill, kill };
}
