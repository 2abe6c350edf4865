import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import dnsPacket, { type Answer, type Packet } from 'dns-packet';

/** The server's behaviour on a question; functions return the datagrams or messages to send. */
export type NameServerAnswer =
  | { records: readonly Answer[]; authorities?: readonly Answer[] }
  | 'nxdomain'
  | 'servfail'
  | 'silent'
  | ((query: Buffer, overTcp: boolean) => readonly Buffer[]);

/** Resolves with sockets of both protocols on one port: a port that is free for UDP may be taken for TCP. */
export async function listenOnBoth(address: string, wantedPort = 0): Promise<{ udp: UdpSocket; tcp: Server }> {
  for (let attempt = 0; ; attempt += 1) {
    const udp = createSocket('udp4').bind(wantedPort, address);
    await once(udp, 'listening');
    const tcp = createServer().listen(udp.address().port, address);
    try {
      await once(tcp, 'listening');

      return { udp, tcp };
    } catch (error) {
      udp.close();
      if (attempt === 9) throw error;
    }
  }
}

/** A real name server on loopback, UDP and TCP on one port, answering from a table that tests rewrite. */
export class NameServer {
  /** Records by `TYPE name`; a name without an entry of any type does not exist. */
  readonly table = new Map<string, NameServerAnswer>();
  /** Questions received as `TYPE name`, with ` tcp` appended to those over TCP. */
  readonly asked: string[] = [];
  /** True to truncate every answer over UDP. */
  truncates = false;
  readonly #udp: UdpSocket;
  readonly #tcp: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(udp: UdpSocket, tcp: Server) {
    this.#udp = udp;
    this.#tcp = tcp;
    udp.on('message', (data, from) => {
      for (const reply of this.#replies(data, false)) udp.send(reply, from.port, from.address);
    });
    tcp.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('error', () => undefined).on('close', () => this.#sockets.delete(socket));
      socket.once('data', (data) => {
        for (const reply of this.#replies(data.subarray(2), true)) {
          const framed = Buffer.concat([Buffer.of(reply.length >> 8, reply.length & 0xff), reply]);
          // In two pieces, as a real network may deliver it.
          socket.write(framed.subarray(0, 5));
          setImmediate(() => socket.write(framed.subarray(5)));
        }
      });
    });
  }

  static async open(address = '127.0.0.1', wantedPort = 0): Promise<NameServer> {
    const { udp, tcp } = await listenOnBoth(address, wantedPort);

    return new NameServer(udp, tcp);
  }

  get port(): number {
    return this.#udp.address().port;
  }

  /** Gives a name these addresses of either family. */
  set(name: string, addresses: readonly string[], ttl = 60): void {
    const fours = addresses.filter((address) => !address.includes(':'));
    const sixes = addresses.filter((address) => address.includes(':'));
    this.table.set(`A ${name}`, { records: fours.map((data) => ({ type: 'A', name, ttl, data })) });
    this.table.set(`AAAA ${name}`, { records: sixes.map((data) => ({ type: 'AAAA', name, ttl, data })) });
  }

  /** Gives the questions for both families of a name the same answer. */
  setBoth(name: string, answer: NameServerAnswer): void {
    for (const type of ['A', 'AAAA']) this.table.set(`${type} ${name}`, answer);
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await Promise.all([
      new Promise<void>((done) => this.#udp.close(done)),
      new Promise((done) => this.#tcp.close(done)),
    ]);
  }

  #replies(data: Buffer, overTcp: boolean): readonly Buffer[] {
    const query = dnsPacket.decode(data);
    const [question] = query.questions ?? [];
    if (question === undefined) return [];
    const key = `${question.type} ${question.name}`;
    this.asked.push(overTcp ? `${key} tcp` : key);
    const answer = this.table.get(key) ?? 'nxdomain';
    if (answer === 'silent') return [];
    if (typeof answer === 'function') return answer(data, overTcp);
    const { id = 0, questions = [] } = query;
    const base: Packet = { type: 'response', id, questions };
    if (typeof answer === 'string') return [dnsPacket.encode({ ...base, flags: answer === 'nxdomain' ? 3 : 2 })];
    if (this.truncates && !overTcp) return [dnsPacket.encode({ ...base, flags: dnsPacket.TRUNCATED_RESPONSE })];
    const { records, authorities = [] } = answer;

    return [dnsPacket.encode({ ...base, answers: [...records], authorities: [...authorities] })];
  }
}
