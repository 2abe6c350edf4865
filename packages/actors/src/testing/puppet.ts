import { actor, takes, text, unchecked, type ActorRef, type Behaviour, type Down, type Shapes } from '../index.js';
import { looseShapes } from './counter.js';

/** A test actor that does what its messages say and records what it saw. */
export type PuppetProtocol = {
  note: (message: { what: string }) => void;
  /** Casts to another actor, and answers with the id of its own request. */
  pass: (message: { to: ActorRef<PuppetProtocol>; what: string }) => string | undefined;
  /** Waits, then casts and logs. */
  passLater: (message: { to: ActorRef<PuppetProtocol>; what: string; after: Promise<void> }) => void;
  fail: (message: { why: string }) => void;
  hatch: (message: { name: string }) => ActorRef<PuppetProtocol>;
  watch: (message: { target: ActorRef<PuppetProtocol> }) => void;
  ended: (message: { down: Down }) => void;
  tickIn: (message: { ms: number }) => void;
  tick: (message: object) => void;
  seen: (message: object) => readonly string[];
};

export interface PuppetState {
  seen: string[];
  secret: string;
}

export const PUPPET: Shapes<PuppetProtocol> = {
  ...looseShapes<PuppetProtocol>('note', 'passLater', 'fail', 'watch', 'ended', 'tickIn', 'tick', 'seen'),
  pass: takes({ to: actor(() => PUPPET), what: text() }, unchecked<string | undefined>()),
  hatch: takes(
    { name: text() },
    actor(() => PUPPET),
  ),
};

export function puppet(
  extra: Partial<Behaviour<PuppetProtocol, PuppetState>> = {},
): Behaviour<PuppetProtocol, PuppetState> {
  return {
    kind: 'puppet',
    shapes: PUPPET,
    endable: true,
    init: (context) => ({ seen: [`init in ${context.requestId}`], secret: 'open sesame' }),
    handlers: {
      note: (state, { what }, context) => {
        state.seen.push(`${what} in ${context.requestId}`);
        context.log.info('noted', { what });
      },
      pass: (_state, { to, what }, context) => {
        context.cast(to, { type: 'note', what });
        return context.requestId;
      },
      passLater: async (_state, { to, what, after }, context) => {
        await after;
        context.cast(to, { type: 'note', what });
      },
      fail: (_state, { why }) => {
        throw new Error(why);
      },
      hatch: (_state, { name }, context) => context.spawn(puppet(), { name }),
      watch: (_state, { target }, context) => {
        context.monitor(target, (down) => ({ type: 'ended', down }));
      },
      ended: (state, { down }, context) => {
        state.seen.push(`${down.ref.path} ${down.reason} in ${context.requestId}`);
      },
      tickIn: (_state, { ms }, context) => context.setTimer('tick', ms, { type: 'tick' }),
      tick: (state, _message, context) => {
        state.seen.push(`tick in ${context.requestId}`);
      },
      seen: (state) => state.seen,
    },
    ...extra,
  };
}
