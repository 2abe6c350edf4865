import type { ActorContext } from '@bloom/actors';
import type { MediaRoom } from '@bloom/sfu';
import { done, refusals, refused, unwrap, type Outcome } from '../outcome.js';
import type { ComponentType } from '../component-schemas.js';
import { RoomError, VIDEO_CODECS, type ComponentView, type NamedConfig, type VideoCodec } from '../room-service.js';
import type {
  ComponentKind,
  ComponentKinds,
  ComponentReport,
  ComponentRoom,
  PreparedComponent,
  Resumed,
} from './component-kind.js';
import type { ComponentRecord } from './component-table.js';
import type { RoomMachine } from './room-machine.js';
import type { RoomProtocol } from './room-messages.js';
import type { ComponentSnapshot } from './room-snapshot.js';

/** A component of a room that moves here, once this node has checked that it can run it. */
export interface ResumedComponent {
  snapshot: ComponentSnapshot;
  prepared: PreparedComponent;
}

export interface AddComponentOptions {
  machine: RoomMachine;
  kinds: ComponentKinds;
  config: NamedConfig;
  media: MediaRoom;
  newId: () => string;
  /** See `ComponentHost`. */
  isFenced: () => boolean;
  context: ActorContext<RoomProtocol>;
  /** Context of the room's own lifetime: later reports of a component belong to no request. */
  life: ActorContext<RoomProtocol>;
}

/** Checks in the order that clients rely on: kind, codec, limit, options (docs/reference/http-api.md, "Components"). */
export async function addComponent(
  { machine, kinds, config, media, newId, isFenced, context, life }: AddComponentOptions,
  type: ComponentType,
  options: unknown,
): Promise<Outcome<ComponentView>> {
  const { roomId, videoCodec } = config;
  const kind = kinds.get(type);
  if (kind === undefined) return refusals.componentsDisabled(type);
  const missing = kind.missingPackage?.();
  if (missing !== undefined) return refusals.componentsNeed(type, missing);
  const given = options ?? {};
  const isObject = typeof given === 'object' && !Array.isArray(given);
  const asked = (isObject ? given : {}) as Record<string, unknown>;
  if (!suitsRoom(kind, asked, videoCodec)) return refusals.incompatibleCodec(roomId);
  if (kind.limitPerRoom !== null && machine.components.count(type) >= kind.limitPerRoom)
    return refusals.componentLimit(type, roomId);
  if (!isObject) return refusals.invalidOptions();

  let prepared: PreparedComponent;
  try {
    prepared = await kind.prepare(asked, { roomId, videoCodec });
  } catch (error) {
    if (error instanceof RoomError) return refused(error.code, error.message);
    context.log.error('component.prepare_failed', { kind: type, error });
    return refusals.componentFailed(type);
  }
  if (machine.ended) return refusals.roomNotFound(roomId);

  const id = newId();
  const { properties } = prepared;
  const component = { id, type, options: asked, properties, origins: new Set<string>(), prepared };
  const isStarted = startComponent({ machine, config, media, isFenced, context, life }, component);

  return isStarted ? done({ id, type, properties, tracks: [] }) : refusals.componentFailed(type);
}

/** Returns whether the component can use every codec that clients of the room send without being asked for another. */
function suitsRoom(kind: ComponentKind, options: Record<string, unknown>, required: VideoCodec | null): boolean {
  const taken = kind.videoCodecs?.(options);
  const sent = required === null ? VIDEO_CODECS : [required];

  return taken === undefined || sent.every((codec) => taken.includes(codec));
}

type Starting = Pick<ComponentRecord, 'id' | 'type' | 'options' | 'properties' | 'origins'> & {
  prepared: PreparedComponent;
  resumed?: Resumed;
};

/** Starts a component and adds it to the room. Returns false if it does not start. */
function startComponent(
  { machine, config, media, isFenced, context, life }: Omit<AddComponentOptions, 'kinds' | 'newId'>,
  { prepared, resumed, ...component }: Starting,
): boolean {
  const { id, type } = component;
  const { roomId, videoCodec } = config;
  let running: ComponentRecord['running'];
  const early: ComponentReport[] = [];
  let started = false;
  try {
    running = prepared.start({
      roomId,
      videoCodec,
      componentId: id,
      media,
      isFenced,
      log: life.log.child({ componentId: id }),
      ...(resumed === undefined ? {} : { resumed }),
      report: (report) => {
        if (started) life.cast(life.self, { type: 'fromComponent', componentId: id, report });
        else early.push(report);
      },
    });
  } catch (error) {
    context.log.error('component.start_failed', { componentId: id, kind: type, error });
    return false;
  }
  context.inRequest(() => {
    const { subscribeMode } = prepared;
    const tracks = new Map(resumed?.tracks.map((track) => [track.trackId, track]));
    const expected = resumed === undefined ? {} : { expected: { tracks } };
    machine.addComponent({ ...component, subscribeMode, tracks: new Map(), running, ...expected });
    started = true;
    for (const report of early) machine.fromComponent(id, report);
  });

  return true;
}

/**
 * Checks whether this node can run the components of a room that moves here from `node`, with the limits for new ones.
 * @throws RoomError with the reason
 */
export async function prepareComponents(
  snapshots: readonly ComponentSnapshot[],
  { kinds, node, ...room }: ComponentRoom & { kinds: ComponentKinds; node: string },
): Promise<ResumedComponent[]> {
  const { roomId, videoCodec } = room;
  const counts = new Map<ComponentType, number>();
  for (const { type, options } of snapshots) {
    const sum = (counts.get(type) ?? 0) + 1;
    counts.set(type, sum);
    const kind = kinds.get(type);
    const { limitPerRoom = null } = kind ?? {};
    if (kind !== undefined && !suitsRoom(kind, options, videoCodec)) unwrap(refusals.incompatibleCodec(roomId));
    if (limitPerRoom !== null && sum > limitPerRoom) unwrap(refusals.componentLimit(type, roomId));
  }

  return Promise.all(
    snapshots.map(async (snapshot) => {
      const { type, options, progress } = snapshot;
      const kind = kinds.get(type);
      const missing = kind?.missingPackage?.();
      if (kind === undefined) return unwrap(refusals.componentsDisabled(type));
      if (missing !== undefined) return unwrap(refusals.componentsNeed(type, missing));

      return { snapshot, prepared: await kind.prepare(options, room, { node, progress }) };
    }),
  );
}

/** Continues the components of a room that has moved here. One that does not start has crashed. */
export function resumeComponents(
  options: Omit<AddComponentOptions, 'kinds' | 'newId' | 'context'>,
  components: readonly ResumedComponent[],
): void {
  const { machine, life } = options;
  for (const { snapshot, prepared } of components) {
    const { origins, tracks, progress, ...component } = snapshot;
    const starting = { ...component, origins: new Set(origins), resumed: { tracks, progress } };
    if (startComponent({ ...options, context: life }, { ...starting, prepared })) continue;
    const broken: PreparedComponent = { ...prepared, start: () => ({ close: async () => undefined }) };
    startComponent({ ...options, context: life }, { ...starting, prepared: broken });
    machine.fromComponent(component.id, { do: 'crashed', reason: 'it did not start where its room moved' });
  }
}

/**
 * Tells the components that a move of their room begins or is given up. A fault of one must not end the room, nor keep
 * it here; one that might stay frozen has crashed.
 */
export async function freezeComponents(
  machine: RoomMachine,
  frozen: boolean,
  context: ActorContext<RoomProtocol>,
): Promise<void> {
  const each = machine.components.all().map(async ({ id, type, running }) => {
    try {
      await running.freeze?.(frozen);
    } catch (error) {
      context.log.error('component.freeze_failed', { componentId: id, kind: type, frozen, error });
      if (frozen) return;
      const report = { do: 'crashed', reason: 'it could not go on after a move that was given up' } as const;
      context.cast(context.self, { type: 'fromComponent', componentId: id, report });
    }
  });
  await Promise.all(each);
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
