import type { Call } from './calls/call.js';
import type { CallEvent, CallState, MovingCall } from './calls/call-options.js';
import type { Account } from './calls/dialog.js';
import type { EndReason } from './calls/end-reason.js';
import { Liveness } from './calls/liveness.js';
import { checkCredentials, parsePhoneNumber, parseRegistrar } from './calls/identity.js';
import type { Registration, RegistrationEvent, RegistrationState } from './calls/registration.js';
import { awakeClock, type Clock, Timer } from '@bloom/time';
import { SipError } from './errors.js';
import type { CodecName } from './media/codecs.js';
import { type CallAudio, type CallMedia, MediaPort, type OpenMedia } from './media/media-port.js';
import type { RtpStats } from './media/rtp-session.js';
import type { LoggedMessage } from './message-log.js';
import { MessageLog } from './message-log.js';
import type { SipMessage } from './message.js';
import { systemRandomness } from './randomness.js';
import { locate, type NameService, systemNames } from './transport/locate.js';
import { SipTransport } from './transport/sip-transport.js';
import type { Target } from './transport/target.js';
import { UserAgent } from './user-agent.js';

export interface RegistrarCredentials {
  /** Host name or IP address, with an optional `:port`. */
  address: string;
  username: string;
  password: string;
}

export interface SipPhoneOptions {
  /** IP address to listen on and advertise. */
  address: string;
  /** Where to bind if `address` is not local, for example `0.0.0.0`. */
  bindAddress?: string;
  /** Default: chosen by DNS, falling back to UDP. */
  transport?: 'UDP' | 'TCP';
  /** Requested lifetime of a registration; the registrar decides. Default 300. */
  expiresSeconds?: number;
  onRegistration?: (event: RegistrationEvent) => void;
  /**
   * Called when a received message causes an unexpected error. The message is dropped; without this the error is
   * thrown.
   */
  onFault?: (error: unknown) => void;
  clock?: Clock;
  names?: NameService;
}

export interface DialOptions {
  /** Audio of the call, or the function that opens it elsewhere. */
  audio: CallAudio | OpenMedia;
  onEvent?: (event: CallEvent) => void;
  /** In order of preference; default PCMU, PCMA. Offer opus only when `audio` supports it. */
  codecs?: readonly CodecName[];
  /** Default 60 s. */
  ringTimeoutMs?: number;
  /** An answered call ends after this long without a sign of life, see `Liveness`. Default 60 s; 0 disables it. */
  mediaTimeoutMs?: number;
  /** Returns true while another phone may have taken the call over: this one neither asks nor ends it meanwhile. */
  isElsewhere?: (() => boolean) | undefined;
}

interface OpenOptions extends DialOptions {
  number: string;
  former?: MovingCall;
}

/** A call in progress. */
export interface PhoneCall {
  readonly number: string;
  readonly state: CallState;
  /** Resolves when the call has ended for any reason; never rejects. */
  readonly ended: Promise<{ reason: EndReason; status: number | undefined; text: string }>;
  hangUp(): void;
  /** Returns what another phone needs to continue the call; undefined before the answer and after the end. */
  moving(): MovingCall | undefined;
  /** True: the other side must wait with changes, because another phone is about to continue the call. */
  freeze(frozen: boolean): void;
  stats(): RtpStats;
}

const KEEP_ALIVE_MS = 25_000;
/** Addresses of a provider that are remembered. */
const MAX_HOSTS = 16;
/** Time limit for the responses to the last BYE and REGISTER. */
const SETTLE_TIMEOUT_MS = 3000;

/**
 * A phone for one account at a provider: registers, calls one number at a time, and unregisters when stopped. `start`
 * -> `dial` -> `hangUp` -> `stop`.
 */
export class SipPhone {
  readonly #options: SipPhoneOptions;
  readonly #clock: Clock;
  readonly #names: NameService;
  readonly #log = new MessageLog(() => Date.now());
  readonly #keepAlive: Timer;
  /** Addresses of the provider: where requests went, newest last. */
  readonly #hosts = new Set<string>();
  #transport: SipTransport | undefined;
  #agent: UserAgent | undefined;
  #account: Account | undefined;
  #registration: Registration | undefined;
  #call: (PhoneCall & { leave(): void }) | undefined;
  #dialling = false;
  /** True when the call was hung up while being prepared. */
  #hungUpEarly = false;
  #hasLeft = false;
  #closed = false;
  /** Calls still waiting for their last response. */
  readonly #unsettled = new Set<Promise<void>>();
  #stopping: Promise<void> | undefined;
  #onStopped: (() => void) | undefined;

  constructor(options: SipPhoneOptions) {
    this.#options = options;
    this.#clock = options.clock ?? awakeClock;
    this.#names = options.names ?? systemNames();
    this.#keepAlive = new Timer(this.#clock);
  }

  /** State of the registration. Calls need not wait for it, but most providers expect them to. */
  get registration(): RegistrationState {
    return this.#registration?.state ?? 'idle';
  }

  /** The call in progress. */
  get call(): PhoneCall | undefined {
    return this.#call;
  }

  /** The last 200 messages, credentials masked. */
  trace(): readonly LoggedMessage[] {
    return this.#log.entries();
  }

  /**
   * Opens the sockets and starts registering; `onRegistration` reports the outcome.
   * @throws SipError SIP_MALFORMED for an unusable registrar address, username or password; the system's error when the
   * port is taken.
   */
  async start(credentials: RegistrarCredentials): Promise<void> {
    if (this.#account !== undefined || this.#stopping !== undefined)
      throw new SipError('SIP_STATE', 'the phone has already been started');
    checkCredentials(credentials);
    const { domain, port } = parseRegistrar(credentials.address);
    const { username, password } = credentials;
    this.#account = { domain, port, username, password, transport: this.#options.transport };
    const transport = await SipTransport.open({
      address: this.#options.address,
      ...(this.#options.bindAddress === undefined ? {} : { bindAddress: this.#options.bindAddress }),
      port: 0,
      onMessage: (message, source) => this.#receive(message, source),
      onFailure: (target) => this.#agent?.transportFailed(target),
      clock: this.#clock,
    }).catch((error: unknown) => {
      // The caller may try again, perhaps with another address.
      this.#account = undefined;
      throw error;
    });
    if (this.#stopping) {
      await transport.close();
      return;
    }
    this.#transport = transport;
    this.#agent = new UserAgent(
      {
        clock: this.#clock,
        randomness: systemRandomness,
        send: (message, target) => {
          this.#log.add('out', message, target);
          if (message.kind === 'request') this.#remember(target.host);
          transport.send(message, target);
        },
        locate: (uri, done) => {
          void locate(uri, { names: this.#names, randomness: systemRandomness }).then((targets) => {
            if (!this.#closed) done(targets);
          });
        },
        local: (name) => transport.local(name),
      },
      this.#account,
    );
    this.#registration = this.#agent.register({
      expiresSeconds: this.#options.expiresSeconds ?? 300,
      onEvent: (event) => this.#registrationEvent(event),
    });
  }

  /**
   * Calls a number; `onEvent` and `ended` report progress.
   * @throws SipError SIP_BAD_NUMBER for characters other than digits, SIP_STATE when not started or during another
   * call; and the error from opening the audio.
   */
  async dial(number: string, options: DialOptions): Promise<PhoneCall> {
    return this.#open({ ...options, number: parsePhoneNumber(number) });
  }

  /**
   * Continues an answered call that another phone of the account had. The other side is asked to send its audio here;
   * the event `moved` reports that it does.
   * @throws as `dial`; SIP_MALFORMED for a call that cannot be continued
   */
  async resume(former: MovingCall, options: DialOptions): Promise<PhoneCall> {
    return this.#open({ ...options, number: parsePhoneNumber(former.number), former });
  }

  async #open(options: OpenOptions): Promise<PhoneCall> {
    const agent = this.#agent;
    if (agent === undefined || this.#stopping !== undefined)
      throw new SipError('SIP_STATE', 'the phone has not been started');
    if (this.#call !== undefined || this.#dialling) throw new SipError('SIP_STATE', 'the phone already has a call');
    this.#dialling = true;
    this.#hungUpEarly = false;
    try {
      const media = await this.#openMedia(options);
      try {
        if (this.#stopping || this.#hasLeft) throw new SipError('SIP_STATE', 'the phone was stopped');
        const call = this.#begin(agent, media, options);
        if (this.#hungUpEarly) call.hangUp();
        return call;
      } catch (error) {
        await media.close();
        throw error;
      }
    } finally {
      this.#dialling = false;
    }
  }

  /** Ends the call in progress, if any. */
  hangUp(): void {
    this.#hungUpEarly = true;
    this.#call?.hangUp();
  }

  /** Leaves an answered call to the phone that continues it, and hangs up any other; `stop` follows. */
  leave(): void {
    this.#hasLeft = true;
    this.#call?.leave();
  }

  /** Hangs up, unregisters and closes the sockets. Idempotent; never rejects. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    this.#keepAlive.stop();
    this.hangUp();
    const limit = new Timer(this.#clock);
    const expired = new Promise<void>((done) => limit.start(SETTLE_TIMEOUT_MS, done));
    const answers = [...this.#unsettled];
    if (this.#registration !== undefined) {
      answers.push(new Promise<void>((done) => (this.#onStopped = done)));
      this.#registration.stop();
    }
    await Promise.race([Promise.all(answers), expired]);
    limit.stop();
    this.#closed = true;
    this.#agent?.close();
    await this.#transport?.close();
  }

  /** Anyone can send messages, so none of them may end the process. */
  #receive(message: SipMessage, source: Target): void {
    try {
      this.#log.add('in', message, source);
      this.#agent?.receive(message, source);
    } catch (error) {
      if (this.#options.onFault === undefined) throw error;
      this.#options.onFault(error);
    }
  }

  /** Only requests prove a host: responses are also sent to strangers. */
  #remember(host: string): void {
    this.#hosts.delete(host);
    this.#hosts.add(host);
    const [oldest = ''] = this.#hosts;
    if (this.#hosts.size > MAX_HOSTS) this.#hosts.delete(oldest);
  }

  #openMedia({ audio, onEvent }: DialOptions): Promise<CallMedia> {
    const { address, bindAddress = address } = this.#options;
    const onDigit = (digit: string) => onEvent?.({ type: 'digit', digit });
    if (typeof audio === 'function') return audio({ address, bindAddress, onDigit });
    return MediaPort.open({
      address,
      bindAddress,
      onDigit,
      audio,
      clock: this.#clock,
      randomness: systemRandomness,
    });
  }

  #begin(agent: UserAgent, media: CallMedia, options: OpenOptions): PhoneCall {
    const { number, former } = options;
    let end: (how: { reason: EndReason; status: number | undefined; text: string }) => void = () => {};
    let settle: () => void = () => {};
    const ended = new Promise<{ reason: EndReason; status: number | undefined; text: string }>((done) => (end = done));
    const settled = new Promise<void>((done) => (settle = done));
    this.#unsettled.add(settled);
    void settled.then(() => this.#unsettled.delete(settled));
    const timeoutMs = options.mediaTimeoutMs ?? 60_000;
    const liveness = new Liveness({
      clock: this.#clock,
      timeoutMs,
      quietFor: () => media.quietFor(),
      isElsewhere: options.isElsewhere,
      ask: (answered) => call.ask(answered),
      onGone: () => call.hangUp('media_timeout'),
    });
    const onEvent = (event: CallEvent) => {
      if (event.type === 'media') {
        media.configure({ ...event.audio, signallingHosts: [...this.#hosts] });
        liveness.setHeld(event.audio.direction !== 'sendrecv');
      } else if (event.type === 'answered' || event.type === 'moved') {
        if (timeoutMs > 0) liveness.start();
      } else if (event.type === 'ended') {
        liveness.stop();
        void media.close();
        if (this.#call === phone) this.#call = undefined;
      }
      options.onEvent?.(event);
      if (event.type === 'ended') end({ reason: event.reason, status: event.status, text: event.text });
    };
    const phone = {
      number,
      get state() {
        return call.state;
      },
      ended,
      hangUp: () => call.hangUp(),
      moving: () => call.moving(),
      freeze: (frozen: boolean) => call.freeze(frozen),
      leave: () => call.leave(),
      stats: () => media.stats(),
    };
    const call: Call = agent.dial({
      number,
      ...(former === undefined ? {} : { former }),
      media: { address: this.#options.address, port: media.port },
      codecs: options.codecs ?? ['PCMU', 'PCMA'],
      ringTimeoutMs: options.ringTimeoutMs ?? 60_000,
      onEvent,
      onSettled: () => settle(),
    });
    if (call.state !== 'ended') this.#call = phone;
    return phone;
  }

  #registrationEvent(event: RegistrationEvent): void {
    if (event.type === 'stopped') this.#onStopped?.();
    if (event.type === 'registered' && !this.#keepAlive.running) this.#scheduleKeepAlive();
    this.#options.onRegistration?.(event);
  }

  #scheduleKeepAlive(): void {
    if (this.#closed || this.#stopping !== undefined) return;
    this.#keepAlive.start(KEEP_ALIVE_MS, () => {
      const target = this.#registration?.target;
      if (target !== undefined) this.#transport?.keepAlive(target);
      this.#scheduleKeepAlive();
    });
  }
}
