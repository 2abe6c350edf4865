import type { SipMessage } from './message.js';
import { writeMessage } from './message.js';
import type { Target } from './transport/target.js';
import { targetText } from './transport/target.js';

export interface LoggedMessage {
  /** Milliseconds since the epoch. */
  at: number;
  direction: 'in' | 'out';
  /** The other side, such as `UDP 192.0.2.1:5060`. */
  peer: string;
  /** The message as on the wire, with credentials masked. */
  text: string;
}

const MAX_MESSAGES = 200;
const MAX_TEXT = 4096;
/** Longest secret. Text this close to a cut is left out, so that no secret is shown in part. */
const MAX_SECRET = 1024;

/** A phone's last messages, without anything that would grant access. */
export class MessageLog {
  readonly #now: () => number;
  readonly #messages: LoggedMessage[] = [];

  constructor(now: () => number) {
    this.#now = now;
  }

  add(direction: 'in' | 'out', message: SipMessage, peer: Target): void {
    const bytes = writeMessage(message);
    let text = maskCredentials(bytes.toString('utf8', 0, MAX_TEXT + MAX_SECRET));
    // The end of the cut text may be the start of a secret.
    if (bytes.length > MAX_TEXT + MAX_SECRET) text = text.slice(0, Math.max(0, text.length - MAX_SECRET));
    text = text.slice(0, MAX_TEXT);
    this.#messages.push({ at: this.#now(), direction, peer: targetText(peer), text });
    if (this.#messages.length > MAX_MESSAGES) this.#messages.shift();
  }

  /** Oldest first. */
  entries(): readonly LoggedMessage[] {
    return [...this.#messages];
  }
}

const secretLine = /^(?:Proxy-)?Authorization\s*:/i;
/**
 * A possible password inside a URI: it is one if an `@` follows. The match includes text that turns out not to be one,
 * so that nothing is scanned twice: strangers send these messages.
 */
const uriPassword = /(sips?:[^\s:@;<>"]+):[^\s@<>"]+(@?)/gi;

export function maskCredentials(text: string): string {
  return text
    .split('\r\n')
    .map((line) => {
      if (secretLine.test(line)) return `${line.slice(0, line.indexOf(':'))}: ${maskDigest(line)}`;
      if (line.startsWith('a=crypto:')) return 'a=crypto:***';
      return line.replaceAll(uriPassword, (found, user: string, at: string) => (at === '' ? found : `${user}:***@`));
    })
    .join('\r\n');
}

/** Keeps user and realm, which help with troubleshooting. Masks the proof, even in unknown schemes. */
function maskDigest(line: string): string {
  if (!/^[^:]*:\s*Digest\s/i.test(line)) return '***';
  const kept = ['username', 'realm', 'uri', 'algorithm', 'qop', 'nc'].flatMap((name) => {
    const field = new RegExp(`[\\s,]${name}=("[^"]{0,256}"|[^\\s,"]{1,256})`, 'i').exec(line);
    return field ? [`${name}=${field[1]}`] : [];
  });
  return `Digest ${[...kept, 'response="***"'].join(', ')}`;
}
