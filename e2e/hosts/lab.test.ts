import type { ChildProcess } from 'node:child_process';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { describeWith } from '../harness/needs.js';
import { Lab } from './lab.js';

function output(child: ChildProcess): Promise<string> {
  return new Promise((done) => {
    let text = '';
    child.stdout?.on('data', (data: Buffer) => (text += data.toString()));
    child.stderr?.on('data', (data: Buffer) => (text += data.toString()));
    child.on('close', () => done(text.trim()));
  });
}

const server = `require('net').createServer((s) => s.end(require('os').hostname())).listen(4369, '0.0.0.0', () => console.log('up'))`;
const client = (host: string) => `
  const s = require('net').connect({ port: 4369, host: '${host}', timeout: 3_000 });
  s.on('data', (d) => console.log(String(d)));
  s.on('timeout', () => { console.log('timeout'); s.destroy(); });
  s.on('error', (e) => console.log(e.code));`;

describeWith(['network namespaces'], 'a lab of hosts', () => {
  let lab: Lab;
  beforeAll(async () => {
    lab = await Lab.open();
    lab.addHost('node-a.lab.test');
    lab.addHost('node-b.lab.test');
  });
  afterAll(() => lab.close());

  test('gives each host its own port 4369, hostname, resolver and cable', async () => {
    const [a, b] = lab.hosts as [(typeof lab.hosts)[0], (typeof lab.hosts)[0]];
    const servers = [a, b].map((host) => host.start('node', ['-e', server]));
    await Promise.all(servers.map((child) => new Promise((up) => child.stdout?.once('data', up))));

    expect(await output(a.start('node', ['-e', client('node-b.lab.test')]))).toBe('node-b.lab.test');
    expect(await output(b.start('node', ['-e', client('node-a')]))).toBe('node-a.lab.test');
    const resolve = `require('dns').resolve4('app.lab', (e, r) => console.log(e ? e.code : r.sort().join()))`;
    expect(await output(a.start('node', ['-e', resolve]))).toBe('ENOTFOUND');
    lab.dns.set('app.lab', [a.address, b.address]);
    expect(await output(a.start('node', ['-e', resolve]))).toBe(`${a.address},${b.address}`);

    b.linkDown();
    expect(await output(a.start('node', ['-e', client(b.address)]))).toMatch(/timeout|EHOSTUNREACH/);
    b.linkUp();
    expect(await output(a.start('node', ['-e', client(b.address)]))).toBe('node-b.lab.test');
    expect(a.pids()).toHaveLength(1);
  });
});
