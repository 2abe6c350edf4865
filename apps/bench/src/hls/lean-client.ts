import { connect, type Socket } from 'node:net';

export interface LeanAnswer {
  status: number;
  /** Bytes of the body. */
  length: number;
  /** The last 256 bytes of the body at most. The rest is not kept. */
  tail: Buffer;
}

const TAIL_BYTES = 256;
/** Read buffer shared by all connections: bytes are counted and dropped, so no connection needs its own. */
const INPUT = Buffer.alloc(256 * 1024);

/** One HTTP/1.1 connection that requests one file after another at almost no cost. */
export class LeanClient {
  readonly #headers: string;
  readonly #socket: Socket;
  #head: Buffer = Buffer.alloc(0);
  #tail: Buffer = Buffer.alloc(0);
  /** Bytes of the body still to come; undefined until the head is complete. */
  #missing: number | undefined;
  #length = 0;
  #status = 0;
  #waiting: { resolve(answer: LeanAnswer): void; reject(error: Error): void } | undefined;

  constructor(port: number, host: string, headers: string) {
    this.#headers = headers;
    this.#socket = connect({
      port,
      host,
      noDelay: true,
      onread: { buffer: INPUT, callback: (length) => (this.#take(INPUT.subarray(0, length)), true) },
    });
    this.#socket.on('error', (error) => this.#waiting?.reject(error));
    this.#socket.on('close', () => this.#waiting?.reject(new Error('the connection was closed')));
  }

  get(path: string): Promise<LeanAnswer> {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#socket.write(`GET ${path} HTTP/1.1\r\n${this.#headers}\r\n`);
    });
  }

  close(): void {
    this.#waiting = undefined;
    this.#socket.destroy();
  }

  #take(chunk: Buffer): void {
    const body = this.#missing === undefined ? this.#readHead(chunk) : chunk;
    if (body === undefined || this.#missing === undefined) return;
    this.#missing -= body.length;
    const end = body.subarray(-TAIL_BYTES);
    this.#tail = end.length === TAIL_BYTES ? Buffer.from(end) : Buffer.concat([this.#tail, end]);
    if (this.#missing > 0) return;
    const waiting = this.#waiting;
    const status = this.#status;
    const length = this.#length;
    const tail = this.#tail;
    this.#missing = undefined;
    this.#head = this.#tail = Buffer.alloc(0);
    this.#waiting = undefined;
    waiting?.resolve({ status, length, tail: tail.subarray(-TAIL_BYTES) });
  }

  /** Returns what follows the head in this chunk, or undefined until the head is complete. */
  #readHead(chunk: Buffer): Buffer | undefined {
    this.#head = Buffer.concat([this.#head, chunk]);
    const end = this.#head.indexOf('\r\n\r\n');
    if (end < 0) return undefined;
    const text = this.#head.toString('latin1', 0, end);
    this.#status = Number(text.slice(9, 12));
    this.#length = Number(/\r\ncontent-length: *(\d+)/i.exec(text)?.[1] ?? 0);
    this.#missing = this.#length;

    return this.#head.subarray(end + 4);
  }
}
