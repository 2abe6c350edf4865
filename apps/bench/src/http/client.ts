import { Agent, request } from 'node:http';
import { address, token } from './node.js';

export interface Answer {
  status: number;
  text: string;
}

/** Calls over persistent connections, as a backend makes them. */
export class Client {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 64 });

  constructor(readonly port: number) {}

  call(method: string, path: string, body?: unknown): Promise<Answer> {
    const text = body === undefined ? undefined : JSON.stringify(body);
    return new Promise((resolve, reject) => {
      const outgoing = request(
        {
          agent: this.#agent,
          host: address,
          port: this.port,
          method,
          path,
          headers: {
            authorization: `Bearer ${token}`,
            ...(text === undefined
              ? {}
              : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
          },
        },
        (incoming) => {
          const chunks: Buffer[] = [];
          incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
          incoming.on('end', () =>
            resolve({ status: incoming.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') }),
          );
          incoming.on('error', reject);
        },
      );
      outgoing.on('error', reject);
      outgoing.end(text);
    });
  }

  // oxlint-disable-next-line typescript/no-explicit-any -- JSON of the node under test
  async json(expected: number, line: string, body?: unknown): Promise<any> {
    const [method = '', path = ''] = line.split(' ');
    const { status, text } = await this.call(method, path, body);
    if (status !== expected) throw new Error(`${line} answered ${status}, not ${expected}: ${text}`);
    return text === '' ? undefined : JSON.parse(text);
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** Runs `task` for each number below `count`, `width` at a time. */
export async function inParallel(count: number, width: number, task: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < count) {
      const index = next;
      next += 1;
      await task(index);
    }
  };
  await Promise.all(Array.from({ length: width }, worker));
}
