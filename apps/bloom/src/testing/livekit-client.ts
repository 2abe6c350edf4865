/** A client of LiveKit without media, and its tokens. */
import { gzipSync } from 'node:zlib';
import {
  JoinRequest,
  SignalRequest,
  SignalResponse,
  WrappedJoinRequest,
  WrappedJoinRequest_Compression,
} from '@livekit/protocol';
import { SignJWT } from 'jose';
import type { WebSocket } from 'ws';

export const KEY = 'APIone';
export const SECRET = 'a-secret-of-more-than-thirty-two-characters';

export type Claims = Record<string, unknown> & { video?: Record<string, unknown> };

export function tokenFor({ video, ...claims }: Claims): Promise<string> {
  return new SignJWT({
    iss: KEY,
    sub: 'ann',
    exp: Math.floor(Date.now() / 1_000) + 600,
    video: { roomJoin: true, ...video },
    ...claims,
  })
    .setProtectedHeader({ alg: 'HS256' })
    .sign(new TextEncoder().encode(SECRET));
}

export function joinRequest(join: ConstructorParameters<typeof JoinRequest>[0] = {}): string {
  const wrapped = new WrappedJoinRequest({
    compression: WrappedJoinRequest_Compression.GZIP,
    joinRequest: gzipSync(new JoinRequest({ clientInfo: { protocol: 17 }, ...join }).toBinary()),
  });

  return Buffer.from(wrapped.toBinary()).toString('base64url');
}

/** A client without media. */
export class Client {
  readonly frames: SignalResponse['message'][] = [];
  /** Close code of the websocket, or the refusal. */
  readonly ended: Promise<string>;
  #wake: (() => void)[] = [];

  constructor(
    readonly socket: WebSocket,
    readonly texts: string[] = [],
  ) {
    socket.on('message', (data, isBinary) => {
      if (!isBinary) texts.push(String(data));
      const frame = isBinary ? SignalResponse.fromBinary(data as Buffer) : SignalResponse.fromJsonString(String(data));
      this.frames.push(frame.message);
      for (const wake of this.#wake.splice(0)) wake();
    });
    this.ended = new Promise((resolve) => {
      socket.on('close', (code) => resolve(String(code)));
      socket.on('error', () => undefined);
      socket.on('unexpected-response', (_request, response) => {
        let text = '';
        response.on('data', (chunk) => (text += String(chunk)));
        response.on('end', () => resolve(`${response.statusCode} ${text}`));
      });
    });
  }

  async heard<C extends SignalResponse['message']['case']>(which: C) {
    for (;;) {
      const frame = this.frames.find((each) => each.case === which);
      if (frame !== undefined) return frame.value as Extract<SignalResponse['message'], { case: C }>['value'];
      await new Promise<void>((resolve) => this.#wake.push(resolve));
    }
  }

  /** Waits for a frame of this kind that fits. */
  async until<C extends SignalResponse['message']['case']>(
    which: C,
    fits: (value: Extract<SignalResponse['message'], { case: C }>['value']) => boolean,
  ): Promise<void> {
    const isWanted = (frame: SignalResponse['message']): boolean => frame.case === which && fits(frame.value as never);
    while (!this.frames.some(isWanted)) await new Promise<void>((resolve) => this.#wake.push(resolve));
  }

  send(message: SignalRequest['message']): void {
    this.socket.send(new SignalRequest({ message }).toBinary());
  }
}
