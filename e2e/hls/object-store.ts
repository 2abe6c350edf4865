// An S3 server in a separate process.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { repository } from '../harness/processes.js';

export interface ObjectStoreServer {
  readonly endpoint: string;
  readonly credentials: { accessKeyId: string; secretAccessKey: string; region: string; bucket: string };
  /** Names of the objects under `<prefix>/`. */
  objects(prefix: string): string[];
  /** Loses the objects under `<prefix>/`. */
  forget(prefix: string): void;
  /** Stops listening. */
  stop(): Promise<void>;
  remove(): void;
}

const program = `
import S3rver from 's3rver';
const [directory, bucket] = process.argv.slice(1);
const server = new S3rver({
  address: '127.0.0.1', port: 0, silent: true, directory, configureBuckets: [{ name: bucket, configs: [] }],
});
console.log((await server.run()).port);
`;

export async function startObjectStore(bucket: string): Promise<ObjectStoreServer> {
  const directory = mkdtempSync(join(tmpdir(), 'bloom-e2e-s3-'));
  const child = spawn(process.execPath, ['--input-type=module', '-e', program, directory, bucket], {
    cwd: repository,
    env: {},
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [port] = (await once(child.stdout, 'data')) as [Buffer];

  return {
    endpoint: `http://127.0.0.1:${port.toString().trim()}`,
    credentials: { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER', region: 'eu-central-1', bucket },
    objects: (prefix) => {
      const folder = join(directory, bucket, prefix);
      // The server keeps each object in several files.
      const files = existsSync(folder) ? readdirSync(folder) : [];
      return files.flatMap((name) => /^(.+)\._S3rver_object$/.exec(name)?.[1] ?? []).toSorted();
    },
    forget: (prefix) => rmSync(join(directory, bucket, prefix), { recursive: true }),
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}
