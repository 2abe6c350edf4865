import { type CallProgress, canMove, type Component, type ComponentHost, type ReceivedTrack } from '@bloom/rooms';
import {
  type CallEvent,
  type LoggedMessage,
  parsePhoneNumber,
  type PhoneCall,
  type RegistrarCredentials,
  type RegistrationEvent,
  type RtpStats,
  SipPhone,
} from '@bloom/sip';
import { type Clock, sleep } from '@bloom/time';
import type { PhoneProcesses } from './phone-processes.js';
import { RoomCall } from './room-call.js';

export interface SipComponentOptions {
  host: ComponentHost;
  credentials: RegistrarCredentials;
  /** Address advertised to the provider; `bindAddress` is the local one. */
  address: string;
  bindAddress: string;
  processes: PhoneProcesses;
  clock: Clock;
  /** Called once, when hanging up and unregistering begins; `closed` resolves when that is done. */
  onClosing(closed: Promise<void>): void;
}

/** A finished call. */
export interface EndedCall {
  number: string;
  /** `EndReason` of `@bloom/sip`. */
  reason: string;
  /** Status of the provider's response, if any. */
  status: number | null;
  text: string;
  /** Unix milliseconds. */
  endedAt: number;
}

/** State of a component for operators, as plain data without the password. */
export interface SipInspection {
  registrar: string;
  username: string;
  registration: {
    /** `RegistrationState` of `@bloom/sip`. */
    state: string;
    expiresSeconds: number | null;
    /** Why the last attempt failed. */
    failure: { reason: string; status: number | null; text: string } | null;
  };
  call: {
    number: string;
    /** `waiting` for the registration, then `CallState` of `@bloom/sip`. */
    state: string;
    /** Unix milliseconds. */
    startedAt: number;
    answeredAt: number | null;
    held: boolean;
    codec: string | null;
    /** The phone's track in the room. */
    trackId: string | null;
    rtp: RtpStats | null;
    processId: number | null;
  } | null;
  lastCall: EndedCall | null;
  /** The last 200 messages, oldest first, credentials masked. */
  trace: readonly LoggedMessage[];
}

/** Codecs offered to the provider, in order of preference. */
const CODECS = ['opus', 'PCMU', 'PCMA'] as const;
/** How long a call waits for the registrar's first response. Some providers accept calls without registration. */
const REGISTRATION_WAIT_MS = 5000;
/** The same for a call that has come from another node: until it is here, its phone hears nothing. */
const RESUMED_WAIT_MS = 1000;

interface CurrentCall {
  readonly room: RoomCall;
  phone: PhoneCall | undefined;
  answeredAt: number | undefined;
  held: boolean;
  /** Aborted when this side hangs up. */
  readonly hungUp: AbortController;
  /** The call as the node had it from which it has come. */
  readonly former: CallProgress | undefined;
}

/** A running SIP component: one account's phone in the room. */
export class SipComponent implements Component {
  readonly #options: SipComponentOptions;
  readonly #phone: SipPhone;
  readonly #started: Promise<void>;
  /** Aborted on the registrar's first response. */
  readonly #registrationKnown = new AbortController();
  #registered: number | undefined;
  #registrationFailure: { reason: string; status: number | null; text: string } | undefined;
  #tracks: readonly string[] = [];
  #call: CurrentCall | undefined;
  /** Resolves with the call in progress once it has been dialled; undefined if it was cancelled before. */
  #dialled: Promise<PhoneCall | undefined> = Promise.resolve(undefined);
  /** Number to dial once the current call, already hung up, has ended. */
  #next: string | undefined;
  #lastCall: EndedCall | undefined;
  #crashed = false;
  #frozen = false;
  /** The call as another node was told of it when the component was frozen. */
  #leaving: CallProgress | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: SipComponentOptions) {
    this.#options = options;
    const { address, bindAddress, credentials, host } = options;
    this.#phone = new SipPhone({
      address,
      bindAddress,
      onRegistration: (event) => this.#registrationTold(event),
      onFault: (error) => host.log.error('sip.message_failed', { error }),
    });
    this.#started = this.#phone.start(credentials).catch((error: unknown) => {
      host.log.error('sip.start_failed', { address, bindAddress, error });
      this.#crash(`the phone cannot listen on ${bindAddress}`);
    });
    const { progress, tracks } = host.resumed ?? {};
    if (progress?.call !== undefined) this.#begin(progress.call.number, progress.call, tracks?.[0]?.trackId);
  }

  receive(tracks: readonly ReceivedTrack[]): void {
    this.#tracks = tracks.filter(({ track }) => track.kind === 'audio').map(({ track }) => track.trackId);
    this.#call?.room.receive(this.#tracks);
  }

  dial(phoneNumber: string): void {
    if (this.#closing !== undefined) return;
    const { log } = this.#options.host;
    let number: string;
    try {
      number = parsePhoneNumber(phoneNumber);
    } catch (error) {
      log.error('sip.bad_number', { error });
      this.#crash(error instanceof Error ? error.message : String(error));
      return;
    }
    if (this.#call === undefined) this.#begin(number);
    else if (this.#call.hungUp.signal.aborted) this.#next = number;
    else log.warn('sip.dial_ignored', { number, detail: `a call to ${this.#call.room.number} is already in progress` });
  }

  hangUp(): void {
    this.#next = undefined;
    this.#call?.hungUp.abort();
    this.#phone.hangUp();
  }

  /** The other side of the call waits with changes, which would be lost here. */
  freeze(frozen: boolean): void {
    this.#frozen = frozen;
    this.#call?.phone?.freeze(frozen);
    this.#leaving = frozen ? this.#answered() : undefined;
  }

  /** The other node registers anew and continues an answered call. */
  progress(): { call?: CallProgress } {
    const call = this.#frozen ? this.#leaving : this.#answered();

    return call === undefined ? {} : { call };
  }

  /** Hangs up, unless the call continues on another node or may do so, and unregisters; takes at most 3 s. */
  close(moved = false): Promise<void> {
    if (this.#closing === undefined) {
      // Not a call that was answered since: the other node knows nothing of it.
      const leaves = (moved && this.#leaving !== undefined) || this.#options.host.isFenced?.() === true;
      this.#closing = this.#close(leaves);
      this.#options.onClosing(this.#closing);
    }
    return this.#closing;
  }

  inspect(): SipInspection {
    const { credentials } = this.#options;
    const call = this.#call;
    return {
      registrar: credentials.address,
      username: credentials.username,
      registration: {
        state: this.#phone.registration,
        expiresSeconds: this.#registered ?? null,
        failure: this.#registrationFailure ?? null,
      },
      call:
        call === undefined
          ? null
          : {
              number: call.room.number,
              state: call.phone?.state ?? 'waiting',
              startedAt: call.room.startedAt,
              answeredAt: call.answeredAt ?? null,
              held: call.held,
              codec: call.room.codec ?? null,
              trackId: call.room.trackId ?? null,
              rtp: call.room.stats() ?? null,
              processId: call.room.processId ?? null,
            },
      lastCall: this.#lastCall ?? null,
      trace: this.#phone.trace(),
    };
  }

  async #close(leaves: boolean): Promise<void> {
    const call = this.#call;
    if (leaves) this.#phone.leave();
    else this.hangUp();
    call?.room.close();
    await this.#started;
    // A call that has just come from another node can only be hung up once it is here.
    if (call?.former !== undefined && !leaves) await this.#dialled.catch(() => undefined);
    await this.#phone.stop();
  }

  /** Returns the call in progress if another node can continue it. */
  #answered(): CallProgress | undefined {
    if (this.#call === undefined || this.#call.hungUp.signal.aborted) return undefined;
    const { room, phone, answeredAt, former } = this.#call;
    if (phone === undefined) return former;
    const moving = phone.moving();
    if (moving === undefined || answeredAt === undefined) return undefined;
    const call = { ...moving, startedAt: room.startedAt, answeredAt };

    return canMove(call) ? call : undefined;
  }

  #begin(number: string, former?: CallProgress, trackId?: string): void {
    const { host, processes, clock } = this.#options;
    const room = new RoomCall({
      host,
      number,
      processes,
      startedAt: former?.startedAt ?? clock.wall(),
      trackId,
      onCrash: (reason) => this.#crash(`the process of the call ended: ${reason}`),
    });
    const call: CurrentCall = {
      room,
      phone: undefined,
      answeredAt: former?.answeredAt,
      held: former?.held ?? false,
      hungUp: new AbortController(),
      former,
    };
    this.#call = call;
    room.receive(this.#tracks);
    this.#dialled = this.#dial(call);
    void this.#follow(call, this.#dialled);
  }

  /** Dials a number, or asks the provider to send here what it sends to another node. */
  async #dial(call: CurrentCall): Promise<PhoneCall | undefined> {
    const { room, former } = call;
    const { signal } = call.hungUp;
    await this.#registrationAnswered(signal, former === undefined ? REGISTRATION_WAIT_MS : RESUMED_WAIT_MS);
    if (former === undefined && signal.aborted) return undefined;
    const options = {
      audio: room.open,
      codecs: CODECS,
      isElsewhere: this.#options.host.isFenced,
      onEvent: (event: CallEvent) => this.#callTold(call, event),
    };
    if (former === undefined) {
      this.#options.host.log.info('sip.dialling', { number: room.number });
      call.phone = await this.#phone.dial(room.number, options);
    } else {
      call.phone = await this.#phone.resume(former, options);
    }
    call.phone.freeze(this.#frozen);
    if (signal.aborted) this.#phone.hangUp();

    return call.phone;
  }

  async #follow(call: CurrentCall, dialled: Promise<PhoneCall | undefined>): Promise<void> {
    const { number } = call.room;
    try {
      const phone = await dialled;
      this.#over(call, (await phone?.ended) ?? { reason: 'cancelled', status: undefined, text: '' });
    } catch (error) {
      // Hung up, or its process died, which was already reported.
      if (this.#closing === undefined && !this.#crashed)
        this.#options.host.log.error('sip.dial_failed', { number, error });
      this.#over(call, { reason: 'failed', status: undefined, text: '' });
    }
  }

  /** Resolves when calls may be made, or on hang-up. */
  async #registrationAnswered(hungUp: AbortSignal, waitMs: number): Promise<void> {
    await this.#started;
    const { signal } = this.#registrationKnown;
    await sleep(waitMs, { clock: this.#options.clock, signal: AbortSignal.any([signal, hungUp]) });
  }

  #callTold(call: CurrentCall, event: CallEvent): void {
    const { host, clock } = this.#options;
    const { number } = call.room;
    call.room.onEvent(event);
    switch (event.type) {
      case 'ringing':
        return host.log.info('sip.ringing', { number, status: event.status });
      case 'answered':
        call.answeredAt = clock.wall();
        return host.log.info('sip.answered', { number });
      case 'moved':
        return host.log.info('sip.call_moved', { number });
      case 'held':
        call.held = event.held;
        return host.log.info(event.held ? 'sip.held' : 'sip.resumed', { number });
    }
  }

  #over(call: CurrentCall, how: { reason: string; status: number | undefined; text: string }): void {
    const { host, clock } = this.#options;
    const { number } = call.room;
    const { reason, status, text } = how;
    call.room.close();
    this.#call = undefined;
    this.#lastCall = { number, reason, status: status ?? null, text, endedAt: clock.wall() };
    const ordinary = call.answeredAt !== undefined || reason === 'cancelled';
    const fields = {
      number,
      reason,
      ...(status === undefined ? {} : { status }),
      ...(text === '' ? {} : { answer: text }),
    };
    if (reason === 'not_moved') host.log.warn('sip.call_not_moved', fields);
    else if (ordinary) host.log.info('sip.call_ended', fields);
    else host.log.warn('sip.call_failed', fields);
    const next = this.#next;
    this.#next = undefined;
    if (next !== undefined && this.#closing === undefined) this.#begin(next);
  }

  #registrationTold(event: RegistrationEvent): void {
    const { host, credentials } = this.#options;
    const account = { registrar: credentials.address, username: credentials.username };
    if (event.type === 'registered') {
      const known = this.#registered !== undefined && this.#registrationFailure === undefined;
      this.#registered = event.expiresSeconds;
      this.#registrationFailure = undefined;
      host.log[known ? 'debug' : 'info']('sip.registered', { ...account, expiresSeconds: event.expiresSeconds });
    } else if (event.type === 'failed') {
      const { reason, status, text, final } = event;
      this.#registered = undefined;
      this.#registrationFailure = { reason, status: status ?? null, text };
      const outlook = final ? 'there will be no further attempt' : 'it is tried again';
      host.log.error('sip.registration_failed', { ...account, reason, answer: text, outlook });
    } else host.log.info('sip.unregistered', account);
    this.#registrationKnown.abort();
  }

  /** Fails the component; the room continues without it. */
  #crash(reason: string): void {
    if (this.#crashed || this.#closing !== undefined) return;
    this.#crashed = true;
    this.#options.host.report({ do: 'crashed', reason });
  }
}
