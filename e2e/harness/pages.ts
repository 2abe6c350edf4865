// Bundles the page driver with the unmodified SDKs and serves it, together with the browser that opens it.
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { repository } from './repository.js';

export type Sdk = 'jellyfish' | 'fishjam';

function bundle(): Map<string, Buffer> {
  const out = mkdtempSync(join(tmpdir(), 'bloom-e2e-page-'));
  try {
    const entries = ['jellyfish', 'fishjam'].map((sdk) => join(repository, 'e2e', 'page', `${sdk}.ts`));
    const { status, stderr } = spawnSync(
      join(repository, 'node_modules', '.bin', 'esbuild'),
      [...entries, '--bundle', '--format=iife', '--target=es2022', '--log-level=warning', `--outdir=${out}`],
      { cwd: repository, encoding: 'utf8' },
    );
    if (status !== 0) throw new Error(`esbuild could not bundle the test page:\n${stderr}`);
    return new Map(
      ['jellyfish', 'fishjam'].flatMap((sdk) => [
        [`/${sdk}`, Buffer.from(`<!doctype html><title>${sdk}</title><script src="/${sdk}.js"></script>`)],
        [`/${sdk}.js`, readFileSync(join(out, `${sdk}.js`))],
      ]),
    );
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
}

export interface PageServer {
  urlOf(sdk: Sdk): string;
  close(): Promise<void>;
}

export async function servePages(): Promise<PageServer> {
  const files = bundle();
  const server = createServer((request, response) => {
    const file = files.get(request.url ?? '');
    if (!file) return void response.writeHead(404).end();
    response.setHeader('content-type', request.url?.endsWith('.js') ? 'text/javascript' : 'text/html; charset=utf-8');
    response.end(file);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    urlOf: (sdk) => `http://127.0.0.1:${port}/${sdk}`,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
