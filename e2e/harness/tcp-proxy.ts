// A proxy between a page and the node, which can break the connection in the two ways that networks do.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

export interface TcpProxy {
  /** `host:port` to connect to. */
  readonly host: string;
  /** Sends later connections to another `host:port`. */
  redirect(target: string): void;
  /** Resets the connection at both ends; new connections work. */
  cut(): void;
  /** Resets the page's end while the node's end stays open and silent, like a peer that lost its network. */
  abandon(): void;
  close(): Promise<void>;
}

/** `secure`: the proxy uses TLS to the target, without checking its certificate. */
export async function openProxy(target: string, { secure = false } = {}): Promise<TcpProxy> {
  let [host = '', port = ''] = target.split(':');
  const pairs = new Set<[near: Socket, far: Socket]>();
  const abandoned = new Set<Socket>();

  const server = createServer((near) => {
    const to = { host, port: Number(port) };
    const far = secure
      ? connectTls({ ...to, ...(isIP(host) === 0 ? { servername: host } : {}), rejectUnauthorized: false })
      : connect(to);
    const pair: [Socket, Socket] = [near, far];
    pairs.add(pair);
    near.on('error', () => {});
    far.on('error', () => {});
    near.on('close', () => {
      pairs.delete(pair);
      if (!abandoned.has(far)) far.destroy();
    });
    far.on('close', () => {
      abandoned.delete(far);
      near.destroy();
    });
    near.pipe(far, { end: false });
    far.pipe(near, { end: false });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');

  const cut = (): void => {
    for (const [near, far] of pairs) {
      near.resetAndDestroy();
      // A TLS socket cannot be reset.
      if (secure) far.destroy();
      else far.resetAndDestroy();
    }
  };

  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    redirect: (next) => {
      [host = '', port = ''] = next.split(':');
    },
    cut,
    abandon: () => {
      for (const [near, far] of pairs) {
        abandoned.add(far);
        far.unpipe(near);
        far.pause();
        near.resetAndDestroy();
      }
    },
    close: async () => {
      cut();
      for (const far of abandoned) far.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
