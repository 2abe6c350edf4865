import { connect, type Socket } from 'node:net';

export interface LeanAnswer {
  status: number;
  body: Buffer;
}

/** One connection of HTTP/1.1 that asks for one file after another, and costs next to nothing itself. */
export class LeanClient {
  private readonly socket: Socket;
  private chunks: Buffer[] = [];
  private buffered = 0;
  private needed = Number.POSITIVE_INFINITY;
  private bodyStart = 0;
  private status = 0;
  private waiting: { resolve(answer: LeanAnswer): void; reject(error: Error): void } | undefined;

  constructor(
    port: number,
    host: string,
    private readonly headers: string,
  ) {
    this.socket = connect(port, host);
    this.socket.setNoDelay(true);
    this.socket.on('data', (chunk) => this.take(chunk));
    this.socket.on('error', (error) => this.waiting?.reject(error));
    this.socket.on('close', () => this.waiting?.reject(new Error('the connection was closed')));
  }

  get(path: string): Promise<LeanAnswer> {
    return new Promise((resolve, reject) => {
      this.waiting = { resolve, reject };
      this.socket.write(`GET ${path} HTTP/1.1\r\n${this.headers}\r\n`);
    });
  }

  close(): void {
    this.waiting = undefined;
    this.socket.destroy();
  }

  private take(chunk: Buffer): void {
    this.chunks.push(chunk);
    this.buffered += chunk.length;
    if (this.needed === Number.POSITIVE_INFINITY) this.readHead();
    if (this.buffered < this.needed) return;
    const whole = Buffer.concat(this.chunks);
    const { waiting, status } = this;
    const body = whole.subarray(this.bodyStart, this.needed);
    this.chunks = [];
    this.buffered = 0;
    this.needed = Number.POSITIVE_INFINITY;
    this.waiting = undefined;
    waiting?.resolve({ status, body });
  }

  private readHead(): void {
    const head = Buffer.concat(this.chunks);
    const end = head.indexOf('\r\n\r\n');
    if (end < 0) return;
    const text = head.toString('latin1', 0, end);
    this.chunks = [head];
    this.status = Number(text.slice(9, 12));
    this.bodyStart = end + 4;
    this.needed = this.bodyStart + Number(/\r\ncontent-length: *(\d+)/i.exec(text)?.[1] ?? 0);
  }
}
