import type { ActorContext, MessageOf } from '@bloom/actors';
import type { Notification } from '@bloom/protocol';
import { componentEffects } from './component-effects.js';
import { peerEffects, type PeerEffectsOptions } from './peer-effects.js';
import type { RoomMeasure } from './room-journal.js';
import type { RoomMachine } from './room-machine.js';
import type { RoomProtocol } from './room-messages.js';
import type { RoomTimer, RoomWorld } from './room-world.js';

export interface RoomEffectsOptions extends PeerEffectsOptions {
  /** `requestId` names the request that caused the notification. */
  notify: (notification: Notification, requestId: string | undefined) => void;
  measure: ((measure: RoomMeasure) => void) | undefined;
  /** Called within the room's turn when the machine's view or load has changed. */
  changed: (machine: RoomMachine) => void;
  /** Called when the room has ended and its id is free. */
  ended: () => void;
}

/** Carries out the effects of a machine in the context of its room's actor. */
export function roomEffects(
  options: RoomEffectsOptions,
  context: ActorContext<RoomProtocol>,
  machine: () => RoomMachine,
): RoomWorld {
  const { media } = options;

  return {
    ...peerEffects(options, context),
    ...componentEffects(context),
    media: (command) => media.do(command),
    isCurrent: (event) => media.isCurrent(event),
    endpointOf: (peerId) => media.endpointOf(peerId),
    setTimer: (timer, ms) => context.setTimer(timerName(timer), ms, timerMessage(timer)),
    clearTimer: (timer) => context.clearTimer(timerName(timer)),
    notify: (notification) => options.notify(notification, context.requestId),
    changed: () => options.changed(machine()),
    ended: () => {
      options.ended();
      context.stop();
    },
    get log() {
      return context.log;
    },
    now: () => context.now(),
    measure: (measure) => options.measure?.(measure),
  };
}

function timerName(timer: RoomTimer): string {
  return typeof timer === 'string' ? timer : `overdue ${timer.peerId}`;
}

function timerMessage(timer: RoomTimer): MessageOf<RoomProtocol> {
  return typeof timer === 'string' ? { type: timer } : { type: 'peerOverdue', peerId: timer.peerId };
}
