// Bundles the page driver with the unmodified SDKs, serves it, and starts the browser that opens it.
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { repository } from './processes.js';

export type Sdk = 'jellyfish' | 'fishjam';
export type PageName = Sdk | 'client' | 'livekit';

const PAGES: readonly PageName[] = ['jellyfish', 'fishjam', 'client', 'livekit'];

function bundle(): Map<string, Buffer> {
  const out = mkdtempSync(join(tmpdir(), 'bloom-e2e-page-'));
  try {
    const entries = PAGES.map((page) => join(repository, 'e2e', 'page', `${page}.ts`));
    const { status, stderr } = spawnSync(
      join(repository, 'node_modules', '.bin', 'esbuild'),
      [...entries, '--bundle', '--format=iife', '--target=es2022', '--log-level=warning', `--outdir=${out}`],
      { cwd: repository, encoding: 'utf8' },
    );
    if (status !== 0) throw new Error(`esbuild could not bundle the test page:\n${stderr}`);
    return new Map(
      PAGES.flatMap((page) => [
        [`/${page}`, Buffer.from(`<!doctype html><title>${page}</title><body><script src="/${page}.js"></script>`)],
        [`/${page}.js`, readFileSync(join(out, `${page}.js`))],
      ]),
    );
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
}

/** The suites of a file share it. */
let bundled: ReadonlyMap<string, Buffer> | undefined;

export interface PageServer {
  urlOf(page: PageName): string;
  close(): Promise<void>;
}

/** `at`: the address, and a port if not any. */
export async function servePages(at = '127.0.0.1'): Promise<PageServer> {
  const [address = '', wanted = '0'] = at.split(':');
  const files = (bundled ??= bundle());
  const server = createServer((request, response) => {
    const file = files.get(request.url ?? '');
    if (!file) return void response.writeHead(404).end();
    response.setHeader('content-type', request.url?.endsWith('.js') ? 'text/javascript' : 'text/html; charset=utf-8');
    response.end(file);
  }).listen(Number(wanted), address);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    urlOf: (page) => `http://${address}:${port}/${page}`,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
