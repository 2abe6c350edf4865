import type { Socket } from 'node:dgram';
import { createSocket } from 'node:dgram';
import { isIP, isIPv6 } from 'node:net';
import type { Answer } from 'dns-packet';
import dnsPacket from 'dns-packet';

export interface TestDns {
  /** A and AAAA records of a name; an empty list means that the name exists without addresses. */
  set(name: string, addresses: readonly string[]): void;
  /** Leaves all questions about the name without an answer. */
  silence(name: string): void;
  /** Removes the name. */
  remove(name: string): void;
  /** Returns how often the addresses of a name have been queried. */
  questions(name: string): number;
  close(): Promise<void>;
}

/** Starts a real name server on UDP port 53 of one address, which answers from a table. */
export async function openTestDns(address: string): Promise<TestDns> {
  const table = new Map<string, readonly string[]>();
  const silent = new Set<string>();
  const asked = new Map<string, number>();
  const socket: Socket = createSocket(isIPv6(address) ? 'udp6' : 'udp4');
  socket.on('message', (data, from) => {
    let query;
    try {
      query = dnsPacket.decode(data);
    } catch {
      return;
    }
    const question = query.questions?.[0];
    if (!question) return;
    const name = question.name.toLowerCase();
    if (silent.has(name)) return;
    const addresses = table.get(name);
    if (question.type === 'A') asked.set(name, (asked.get(name) ?? 0) + 1);
    const family = question.type === 'A' ? 4 : question.type === 'AAAA' ? 6 : undefined;
    const answers = (addresses ?? [])
      .filter((data) => isIP(data) === family)
      .map((data): Answer => ({ type: family === 4 ? 'A' : 'AAAA', name: question.name, ttl: 0, data }));
    const reply = dnsPacket.encode({
      type: 'response',
      ...(query.id === undefined ? {} : { id: query.id }),
      flags: dnsPacket.RECURSION_AVAILABLE | (addresses ? 0 : 3),
      questions: [question],
      answers,
    });
    socket.send(reply, from.port, from.address);
  });
  await new Promise<void>((done, failed) => {
    socket.once('error', failed);
    socket.bind(53, address, done);
  });
  return {
    set: (name, addresses) => void table.set(name.toLowerCase(), addresses),
    silence: (name) => void silent.add(name.toLowerCase()),
    remove: (name) => void table.delete(name.toLowerCase()),
    questions: (name) => asked.get(name.toLowerCase()) ?? 0,
    close: () => new Promise((done) => socket.close(() => done())),
  };
}
