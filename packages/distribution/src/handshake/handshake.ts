import { createHash, timingSafeEqual } from 'node:crypto';
import type { HandshakeFailure } from '../errors.js';
import { DEMANDED, expandFlags, FLAG } from './flags.js';

// The handshake of the distribution protocol, version 6 (OTP 23 and later), without its socket. Each message is a
// 16-bit length followed by that number of bytes.

/** Maximum length of a message from a node that has not proved that it knows the cookie. */
const MAX_HANDSHAKE_BYTES = 1_024;

export interface Identity {
  readonly name: string;
  readonly creation: number;
  readonly flags: bigint;
}

export interface Secrets {
  /** Returns the cookie for the node. */
  cookie(remote: string): string;
  /** Returns 32 random bits. */
  challenge(): number;
}

export interface Step {
  readonly send: readonly Buffer[];
  /** Set when the handshake is complete. `rest` holds the bytes after it, which already belong to frames. */
  readonly up?: { readonly remote: Identity; readonly rest: Buffer };
  /** Set when the handshake has failed; `send` is still sent before closing. */
  readonly failed?: HandshakeFailure;
}

export type Status = 'ok' | 'ok_simultaneous' | 'nok' | 'alive' | 'not_allowed';

/** A name for a node that has none and asks for one (flag NAME_ME). */
export interface GivenName {
  readonly name: string;
  readonly creation: number;
}

/** Undefined closes without a status. */
export type Decision = Status | GivenName | undefined;

const NOTHING: Step = { send: [] };

/** Returns the MD5 of the cookie and the challenge in decimal digits. */
export function digest(cookie: string, challenge: number): Buffer {
  return createHash('md5')
    .update(cookie)
    .update(String(challenge >>> 0))
    .digest();
}

export function framed(body: Buffer): Buffer {
  const message = Buffer.allocUnsafe(2 + body.length);
  message.writeUInt16BE(body.length);
  body.copy(message, 2);
  return message;
}

/** Returns `N` of the initiator. */
export function nameMessage(self: Identity): Buffer {
  const name = Buffer.from(self.name, 'utf8');
  const body = Buffer.allocUnsafe(15 + name.length);
  body[0] = 78;
  body.writeBigUInt64BE(self.flags, 1);
  body.writeUInt32BE(self.creation, 9);
  body.writeUInt16BE(name.length, 13);
  name.copy(body, 15);
  return body;
}

/** Returns `N` of the acceptor. */
export function challengeMessage(self: Identity, challenge: number): Buffer {
  const name = Buffer.from(self.name, 'utf8');
  const body = Buffer.allocUnsafe(19 + name.length);
  body[0] = 78;
  body.writeBigUInt64BE(self.flags, 1);
  body.writeUInt32BE(challenge, 9);
  body.writeUInt32BE(self.creation, 13);
  body.writeUInt16BE(name.length, 17);
  name.copy(body, 19);
  return body;
}

/** Reads one message after another from a stream of bytes. */
abstract class Machine {
  #received: Buffer = Buffer.alloc(0);
  protected over = false;

  /** Memory held by incomplete messages; bounded, because a stranger may send anything. */
  get heldBytes(): number {
    return this.#received.buffer.byteLength;
  }

  data(bytes: Buffer): Step {
    if (this.over) return NOTHING;
    this.#received = this.#received.length === 0 ? bytes : Buffer.concat([this.#received, bytes]);
    const send: Buffer[] = [];
    while (!this.over && this.#received.length >= 2) {
      const length = this.#received.readUInt16BE(0);
      if (length === 0 || length > MAX_HANDSHAKE_BYTES) return this.fail('malformed', send);
      if (this.#received.length < 2 + length) break;
      const message = this.#received.subarray(2, 2 + length);
      this.#received = this.#received.subarray(2 + length);
      const step = this.message(message);
      send.push(...step.send);
      if (step.up !== undefined || step.failed !== undefined) return { ...step, send };
    }
    // At most one message is incomplete. A view would keep its whole chunk alive, and `Buffer.from` would keep a piece
    // of Node's pool, which has 64 KiB since Node 24.
    this.#received = Buffer.from(new Uint8Array(this.#received).buffer);
    return send.length === 0 ? NOTHING : { send };
  }

  protected abstract message(message: Buffer): Step;

  protected fail(failed: HandshakeFailure, send: readonly Buffer[] = []): Step {
    this.over = true;
    return { failed, send };
  }

  protected finish(remote: Identity, send: readonly Buffer[]): Step {
    this.over = true;
    return { send, up: { remote, rest: this.#received } };
  }
}

/** The side that dials. */
export class Initiator extends Machine {
  readonly #self: Identity;
  /** The dialled name; undefined accepts any node. */
  readonly #target: string | undefined;
  readonly #secrets: Secrets;
  #state: 'status' | 'challenge' | 'ack' = 'status';
  #remote: Identity | undefined;
  #ownChallenge = 0;

  constructor(self: Identity, target: string | undefined, secrets: Secrets) {
    super();
    this.#self = self;
    this.#target = target;
    this.#secrets = secrets;
  }

  /** True while the other side has sent no status. */
  get waitsForStatus(): boolean {
    return this.#state === 'status';
  }

  /** The node that answered, even when its name or flags failed the handshake; undefined until it has sent its name. */
  get answered(): Identity | undefined {
    return this.#remote;
  }

  start(): Step {
    return { send: [framed(nameMessage(this.#self))] };
  }

  protected message(message: Buffer): Step {
    if (this.#state === 'status') return this.#status(message);
    if (this.#state === 'challenge') return this.#challenge(message);
    return this.#ack(message);
  }

  #status(message: Buffer): Step {
    if (message[0] !== 115) return this.fail('malformed');
    switch (message.toString('latin1', 1)) {
      case 'ok':
      case 'ok_simultaneous':
        this.#state = 'challenge';
        return NOTHING;
      case 'alive':
        // The other side still has a connection that we no longer have.
        this.#state = 'challenge';
        return { send: [framed(Buffer.from('strue'))] };
      case 'nok':
        return this.fail('nok');
      case 'not_allowed':
        return this.fail('not_allowed');
      default:
        return this.fail('malformed');
    }
  }

  #challenge(message: Buffer): Step {
    if (message.length < 19 || message[0] !== 78) return this.fail('malformed');
    const nameEnd = 19 + message.readUInt16BE(17);
    if (nameEnd > message.length) return this.fail('malformed');
    const name = message.toString('utf8', 19, nameEnd);
    const flags = expandFlags(message.readBigUInt64BE(1));
    this.#remote = { name, flags, creation: message.readUInt32BE(13) };
    if (this.#target !== undefined && name !== this.#target) return this.fail('name_mismatch');
    if ((flags & DEMANDED) !== DEMANDED) return this.fail('missing_flags');
    this.#ownChallenge = this.#secrets.challenge();
    this.#state = 'ack';
    const reply = Buffer.allocUnsafe(21);
    reply[0] = 114;
    reply.writeUInt32BE(this.#ownChallenge, 1);
    digest(this.#secrets.cookie(name), message.readUInt32BE(9)).copy(reply, 5);
    return { send: [framed(reply)] };
  }

  #ack(message: Buffer): Step {
    if (message.length !== 17 || message[0] !== 97) return this.fail('malformed');
    const remote = this.#remote as Identity;
    if (!timingSafeEqual(message.subarray(1), digest(this.#secrets.cookie(remote.name), this.#ownChallenge))) {
      return this.fail('bad_cookie');
    }
    return this.finish(remote, []);
  }
}

/**
 * The side that is dialled. `decide` chooses the status for a node by its name, or a name for a node that asks for one
 * and has sent only its host. After `up` the owner must drop its earlier connection to the node before it sends
 * anything.
 */
export class Acceptor extends Machine {
  readonly #self: Identity;
  readonly #decide: (remote: Identity) => Decision;
  readonly #secrets: Secrets;
  #state: 'name' | 'confirm' | 'reply' = 'name';
  #ownChallenge = 0;
  remote: Identity | undefined;

  constructor(self: Identity, decide: (remote: Identity) => Decision, secrets: Secrets) {
    super();
    this.#self = self;
    this.#decide = decide;
    this.#secrets = secrets;
  }

  protected message(message: Buffer): Step {
    if (this.#state === 'name') return this.#name(message);
    if (this.#state === 'confirm') return this.#confirm(message);
    return this.#reply(message);
  }

  #name(message: Buffer): Step {
    if (message.length < 15 || message[0] !== 78) return this.fail('malformed');
    const nameEnd = 15 + message.readUInt16BE(13);
    if (nameEnd > message.length) return this.fail('malformed');
    const flags = expandFlags(message.readBigUInt64BE(1));
    const remote = { name: message.toString('utf8', 15, nameEnd), flags, creation: message.readUInt32BE(9) };
    const asksForName = (flags & FLAG.nameMe) !== 0n;
    // A visible node would be announced to others, which could not dial it: nobody has registered its name.
    if (asksForName && (flags & FLAG.published) !== 0n) return this.fail('not_allowed', [status('not_allowed')]);
    if ((flags & DEMANDED) !== DEMANDED) return this.fail('missing_flags', [status('not_allowed')]);
    const decision = this.#decide(remote);
    if (decision === undefined) return this.fail('aborted');
    if (typeof decision === 'object') {
      this.remote = { ...decision, flags };
      return { send: [namedStatus(decision), this.#ask()] };
    }
    if (decision === 'nok' || decision === 'not_allowed') return this.fail(decision, [status(decision)]);
    this.remote = remote;
    if (decision === 'alive') {
      this.#state = 'confirm';
      return { send: [status('alive')] };
    }
    return { send: [status(decision), this.#ask()] };
  }

  #confirm(message: Buffer): Step {
    const text = message.toString('latin1');
    if (text === 'strue') return { send: [this.#ask()] };
    return this.fail(text === 'sfalse' ? 'aborted' : 'malformed');
  }

  #ask(): Buffer {
    this.#state = 'reply';
    this.#ownChallenge = this.#secrets.challenge();
    // A node that asked for its name gives up on a server that does not set this flag too.
    const flags = this.#self.flags | ((this.remote?.flags ?? 0n) & FLAG.nameMe);
    return framed(challengeMessage({ ...this.#self, flags }, this.#ownChallenge));
  }

  #reply(message: Buffer): Step {
    if (message.length !== 21 || message[0] !== 114) return this.fail('malformed');
    const remote = this.remote as Identity;
    const cookie = this.#secrets.cookie(remote.name);
    if (!timingSafeEqual(message.subarray(5), digest(cookie, this.#ownChallenge))) return this.fail('bad_cookie');
    const ack = Buffer.concat([Buffer.from([97]), digest(cookie, message.readUInt32BE(1))]);
    return this.finish(remote, [framed(ack)]);
  }
}

function status(text: Status): Buffer {
  return framed(Buffer.from(`s${text}`));
}

/** Returns the status that gives a node its name: length (16 bits), name, creation (32 bits). */
function namedStatus({ name, creation }: GivenName): Buffer {
  const bytes = Buffer.from(name, 'utf8');
  const body = Buffer.alloc(2 + bytes.length + 4);
  body.writeUInt16BE(bytes.length);
  bytes.copy(body, 2);
  body.writeUInt32BE(creation, 2 + bytes.length);
  return framed(Buffer.concat([Buffer.from('snamed:'), body]));
}
