/** Loopback servers that act as cameras, honest or not. */
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';

export interface RtspServer {
  port: number;
  /** Everything received, one string per read. */
  heard: string[];
}

/** Returns the response to a request; undefined sends nothing. */
export type Answer = (request: string, cseq: string) => string | Buffer | undefined | Promise<string>;

const servers = new Set<Server>();
const sockets = new Set<Socket>();

/** Starts a server that answers each request with the result of `answer`, over TLS if given a certificate. */
export async function serve(answer: Answer, tls?: TlsOptions): Promise<RtspServer> {
  const heard: string[] = [];
  const converse = (socket: Socket): void => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('data', async (bytes) => {
      const request = bytes.toString('latin1');
      heard.push(request);
      const cseq = /^CSeq: (\d+)/im.exec(request)?.[1] ?? '0';
      const answered = await answer(request, cseq);
      if (answered !== undefined) socket.write(answered);
    });
  };
  const server = tls === undefined ? createServer(converse) : createTlsServer(tls, converse);
  server.listen(0, '127.0.0.1');
  servers.add(server);
  await once(server, 'listening');

  return { port: (server.address() as AddressInfo).port, heard };
}

/** Sends bytes to everyone connected. */
export function broadcast(bytes: Buffer): void {
  for (const socket of sockets) socket.write(bytes);
}

export function closeServers(): void {
  for (const socket of sockets) socket.destroy();
  for (const server of servers) server.close();
  sockets.clear();
  servers.clear();
}

export const reply = (status: string, cseq: string, rest = ''): string =>
  `RTSP/1.0 ${status}\r\nCSeq: ${cseq}\r\n${rest}\r\n`;

export const described = (sdp: string, cseq: string): string =>
  reply('200 OK', cseq, `Content-Type: application/sdp\r\nContent-Length: ${sdp.length}\r\n`) + sdp;

/** Session description without media. */
export const session = 'v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n';

/** Description of one H.264 stream with its parameter sets. */
export const described264 =
  `${session}m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n` +
  `a=fmtp:96 packetization-mode=1;sprop-parameter-sets=Z0LAHtkDxWhAAAADAEAAAAwDxYuS,aMuMsg==\r\na=control:0\r\n`;
