import type { SipRequest, SipResponse } from '../message.js';
import type { Target } from '../transport/target.js';
import { type Dialog, tagOf } from './dialog.js';
import type { ExchangePort } from './exchange.js';

/** Maximum number of forked branches to acknowledge and end: each costs an ACK and a BYE. */
const MAX_BRANCHES = 16;

interface Acknowledged {
  request: SipRequest;
  target: Target | undefined;
}

/** The ACKs for the 2xx of one call. They have no transaction, so each 2xx that is repeated gets its ACK again. */
export class Acknowledgements {
  readonly #port: ExchangePort;
  /** The last one for each branch, by its To tag. */
  readonly #sent = new Map<string, Acknowledged>();

  constructor(port: ExchangePort) {
    this.#port = port;
  }

  get areFull(): boolean {
    return this.#sent.size >= MAX_BRANCHES;
  }

  /** Acknowledges a 2xx to our INVITE. */
  send(dialog: Dialog, invite: SipRequest, response: SipResponse): void {
    const sequence = Number.parseInt(invite.headers.get('CSeq') as string, 10);
    const ack = dialog.request('ACK', sequence);
    // The ACK carries the credentials of its INVITE (section 22.1).
    for (const name of ['Authorization', 'Proxy-Authorization']) ack.headers.set(name, ...invite.headers.all(name));
    const acknowledged: Acknowledged = { request: ack, target: undefined };
    this.#sent.set(tagOf(response.headers.get('To')), acknowledged);
    this.#port.locate(dialog.nextHop, ([target]) => {
      if (target === undefined) return;
      acknowledged.target = target;
      this.#port.transactions.sendAck(ack, target);
    });
  }

  /** Sends the ACK again for a 2xx that is repeated. Returns false for the first one of its branch. */
  repeat(response: SipResponse): boolean {
    const known = this.#sent.get(tagOf(response.headers.get('To')));
    if (known?.target !== undefined) this.#port.transactions.sendAck(known.request, known.target);

    return known !== undefined;
  }
}
