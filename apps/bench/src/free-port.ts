import { createServer, type AddressInfo } from 'node:net';

/** Returns a TCP port of this address that nobody uses at the moment. */
export async function freePort(address: string): Promise<number> {
  const probe = createServer();
  await new Promise<void>((done) => probe.listen(0, address, done));
  const { port } = probe.address() as AddressInfo;
  await new Promise((done) => probe.close(done));
  return port;
}
