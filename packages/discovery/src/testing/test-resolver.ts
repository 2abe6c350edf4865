import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ManualClock } from '@bloom/time/testing';
import { Resolver, type ResolverOptions } from '../names/resolver.js';

export interface TestMachine {
  readonly resolvConf: string;
  readonly hosts: string;
  /** Replaces a file. */
  write(file: 'resolvConf' | 'hosts', text: string): void;
  remove(): void;
}

/** Writes the two files that configure a machine's name resolution. */
export function machineFiles(resolvConf: string, hosts = ''): TestMachine {
  const folder = mkdtempSync(join(tmpdir(), 'bloom-names-'));
  const paths = { resolvConf: join(folder, 'resolv.conf'), hosts: join(folder, 'hosts') };
  writeFileSync(paths.resolvConf, resolvConf);
  writeFileSync(paths.hosts, hosts);

  return {
    ...paths,
    write: (file, text) => writeFileSync(paths[file], text),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Returns a resolver for a machine with files of these contents, which by default name the server at 127.0.0.1. */
export function testResolver(options: ResolverOptions & { port: number }): Resolver {
  const { resolvConf = 'nameserver 127.0.0.1\noptions attempts:1', hosts = '', ...rest } = options;
  const machine = machineFiles(resolvConf, hosts);
  process.once('exit', () => machine.remove());

  // Without a clock, no time limit expires: on a busy machine even a server on loopback is slow.
  return new Resolver({ clock: new ManualClock(), ...rest, resolvConf: machine.resolvConf, hosts: machine.hosts });
}
