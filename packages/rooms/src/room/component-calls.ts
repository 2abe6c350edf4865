import type { ActorContext } from '@bloom/actors';
import type { MediaRoom } from '@bloom/sfu';
import { done, refusals, refused, type Outcome } from '../outcome.js';
import type { ComponentType } from '../component-schemas.js';
import { RoomError, type ComponentView, type NamedConfig } from '../room-service.js';
import type { ComponentKinds, ComponentReport, PreparedComponent } from './component-kind.js';
import type { ComponentRecord } from './component-table.js';
import type { RoomMachine } from './room-machine.js';
import type { RoomProtocol } from './room-messages.js';

export interface AddComponentOptions {
  machine: RoomMachine;
  kinds: ComponentKinds;
  config: NamedConfig;
  media: MediaRoom;
  newId: () => string;
  context: ActorContext<RoomProtocol>;
  /** Context of the room's own lifetime: later reports of a component belong to no request. */
  life: ActorContext<RoomProtocol>;
}

/** Checks in the order that clients rely on: kind, codec, limit, options (docs/reference/http-api.md, "Components"). */
export async function addComponent(
  { machine, kinds, config, media, newId, context, life }: AddComponentOptions,
  type: ComponentType,
  options: unknown,
): Promise<Outcome<ComponentView>> {
  const { roomId, videoCodec } = config;
  const kind = kinds.get(type);
  if (kind === undefined) return refusals.componentsDisabled(type);
  const missing = kind.missingPackage?.();
  if (missing !== undefined) return refusals.componentsNeed(type, missing);
  if (kind.requiresH264 && videoCodec !== 'h264') return refusals.incompatibleCodec(roomId);
  if (kind.limitPerRoom !== null && machine.components.count(type) >= kind.limitPerRoom)
    return refusals.componentLimit(type, roomId);
  const given = options ?? {};
  if (typeof given !== 'object' || Array.isArray(given)) return refusals.invalidOptions();

  let prepared: PreparedComponent;
  try {
    prepared = await kind.prepare(given as Record<string, unknown>, { roomId, videoCodec });
  } catch (error) {
    if (error instanceof RoomError) return refused(error.code, error.message);
    context.log.error('component.prepare_failed', { kind: type, error });
    return refusals.componentFailed(type);
  }
  if (machine.ended) return refusals.roomNotFound(roomId);

  const id = newId();
  const { properties, subscribeMode } = prepared;
  const log = life.log.child({ componentId: id });
  let running: ComponentRecord['running'];
  const early: ComponentReport[] = [];
  let started = false;
  try {
    running = prepared.start({
      roomId,
      videoCodec,
      componentId: id,
      media,
      log,
      report: (report) => {
        if (started) life.cast(life.self, { type: 'fromComponent', componentId: id, report });
        else early.push(report);
      },
    });
  } catch (error) {
    context.log.error('component.start_failed', { componentId: id, kind: type, error });
    return refusals.componentFailed(type);
  }
  context.inRequest(() => {
    machine.addComponent({ id, type, properties, subscribeMode, origins: new Set(), tracks: new Map(), running });
    started = true;
    for (const report of early) machine.fromComponent(id, report);
  });

  return done({ id, type, properties, tracks: [] });
}

/** Calls `act` with the component, or refuses when it does not exist. */
export function withComponent<T>(
  machine: RoomMachine,
  componentId: string,
  act: (component: ComponentRecord) => Outcome<T>,
): Outcome<T> {
  const component = machine.components.get(componentId);

  return component === undefined ? refusals.componentNotFound(componentId) : act(component);
}
