import { createServer, type AddressInfo } from 'node:net';

/** Returns a currently free TCP port at this address. */
export async function freePort(address: string): Promise<number> {
  const probe = createServer();
  await new Promise<void>((done) => probe.listen(0, address, done));
  const { port } = probe.address() as AddressInfo;
  await new Promise((done) => probe.close(done));
  return port;
}
