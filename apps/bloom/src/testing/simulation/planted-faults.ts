/** Faults that are planted in every node of a cluster, to prove that the rules of a history notice them. */
import type { NodeControl } from '@bloom/http-api';
import type { Log } from '@bloom/log';
import type { NotificationBus, WebhookPoster } from '@bloom/notifications';
import type { Notification } from '@bloom/protocol';
import type { createClusterPort, RoomRouter } from '@bloom/rooms';

type ClusterPort = ReturnType<typeof createClusterPort>;

/** Parts of a node that a fault takes the place of. */
export interface PlantedFault {
  port?(port: ClusterPort): ClusterPort;
  /** Called before anybody subscribes. */
  bus?(bus: NotificationBus): void;
  post?(post: WebhookPoster['post']): WebhookPoster['post'];
  /** Returns, for one node, what changes the rooms that each of its requests sees. */
  rooms?(): (rooms: RoomRouter) => void;
  /** Changes what it does with the orders of operators. */
  control?(control: NodeControl): NodeControl;
  /** Names of the nodes that it is configured to join. */
  seeds?(names: readonly string[]): readonly string[];
  /** Returns whether a member speaks a version of the member protocol. */
  speaks?(): boolean;
  /** The node reports no room on two nodes. */
  readonly hidesConflicts?: boolean;
  /** Its members need no particular cookie. */
  readonly anyCookie?: boolean;
  /** What it leaves behind when it closes. */
  readonly keeps?: 'timers' | 'sockets' | 'actors';
  log?(log: Log): Log;
  /** A part of the rule that it has to break; without one, any rule. */
  readonly breaks?: string;
}

type Cast = Parameters<ClusterPort['cast']>[1];

/** Claims to have sent messages that it loses. */
function losing(isLost: (message: Cast) => boolean): PlantedFault {
  return {
    port: (port) => ({
      ...port,
      cast: (node, message, requestId) => isLost(message) || port.cast(node, message, requestId),
    }),
  };
}

type Publish = NotificationBus['publish'];

function publishing(change: (publish: Publish) => Publish): PlantedFault {
  return { bus: (bus) => Object.assign(bus, { publish: change(bus.publish.bind(bus)) }) };
}

/** Delivers events of other nodes in pairs, the second one first. */
function swapped(publish: Publish): Publish {
  let held: Notification | undefined;
  return (notification, source) => {
    if (source !== 'remote') return publish(notification, source);
    if (held === undefined) {
      held = notification;
      return;
    }
    publish(notification, source);
    publish(held, source);
    held = undefined;
  };
}

export const PLANTED_FAULTS: Readonly<Record<string, PlantedFault>> = {
  'grants every claim to an id': {
    port: (port) => ({
      ...port,
      call: (async (node: string, message: { type: string }, options: never) =>
        message.type === 'claim' ? { granted: true } : port.call(node, message as never, options)) as never,
    }),
  },
  'loses announcements of rooms': losing((message) => message.type === 'announce' && message.created !== undefined),
  'does not announce rooms that have moved to it': losing(
    (message) => message.type === 'announce' && message.created?.epoch !== undefined,
  ),
  'opens a room as soon as it is offered': {
    port: (port) => ({
      ...port,
      call: (async (node: string, message: { type: string; node: string; move: string }, options: never) => {
        const answer = await port.call(node, message as never, options);
        if (message.type === 'offerRoom')
          await port.call(node, { type: 'takeRoom', node: message.node, move: message.move }, options);
        return answer;
      }) as never,
    }),
  },
  'forgets rooms that it has given away': {
    port: (port) => ({
      ...port,
      call: (async (node: string, message: { type: string }, options: never) => {
        if (message.type === 'takeRoom') return null;
        return port.call(node, message as never, options);
      }) as never,
    }),
  },
  'sends no rooms to nodes that join': losing((message) => message.type === 'snapshot'),
  'does not report a room on two nodes': { hidesConflicts: true },
  'publishes events twice': publishing((publish) => (notification, source) => {
    publish(notification, source);
    publish(notification, source);
  }),
  'delivers events of other nodes twice': publishing((publish) => (notification, source) => {
    publish(notification, source);
    if (source === 'remote') publish(notification, source);
  }),
  'delivers events of other nodes out of order': publishing(swapped),
  'loses events of other nodes': publishing((publish) => (notification, source) => {
    if (source !== 'remote' || notification.type !== 'peerDisconnected') publish(notification, source);
  }),
  'does not publish that a peer left': publishing((publish) => (notification, source) => {
    if (source === 'remote' || notification.type !== 'peerDisconnected') publish(notification, source);
  }),
  'does not publish what people write': publishing((publish) => (notification, source) => {
    if (source === 'remote' || notification.type !== 'dataMessage') publish(notification, source);
  }),
  'posts webhooks twice': {
    post: (post) => async (url, body, signal) => {
      await post(url, body, signal);
      await post(url, body, signal);
    },
  },
  'loses webhooks': {
    post: (post) => async (url, body, signal) => (body.length % 3 === 0 ? undefined : post(url, body, signal)),
  },
  'posts webhooks without waiting for the last': {
    post: (post) => async (url, body, signal) => void post(url, body, signal).catch(() => undefined),
  },
  'says that a room is deleted and keeps it': {
    rooms: () => (rooms) => Object.assign(rooms, { deleteRoom: async () => undefined }),
  },
  'says that a room exists and deletes it': {
    rooms: () => (rooms) => {
      const create = rooms.createRoom.bind(rooms);
      const createRoom: RoomRouter['createRoom'] = async (config) => {
        const created = await create(config);
        await rooms.deleteRoom(created.room.id);
        return created;
      };
      Object.assign(rooms, { createRoom });
    },
  },
  'denies rooms of other nodes': {
    rooms: () => {
      const own = new Set<string>();
      return (rooms) => {
        const [get, create] = [rooms.getRoom.bind(rooms), rooms.createRoom.bind(rooms)];
        const createRoom: RoomRouter['createRoom'] = async (config) => {
          const created = await create(config);
          own.add(created.room.id);
          return created;
        };
        const getRoom: RoomRouter['getRoom'] = (roomId) => get(own.has(roomId) ? roomId : `${roomId} elsewhere`);
        Object.assign(rooms, { createRoom, getRoom });
      };
    },
  },
  'says that a room has moved and keeps it': {
    control: (control) => ({
      ...control,
      moveRoom: async (room, node) => ({ room, from: 'here', to: node ?? 'elsewhere', ms: 1 }),
    }),
    breaks: 'where it has never run',
  },
  'says that it drains and takes rooms': {
    control: (control) => ({ ...control, drain: async () => 0 }),
    breaks: 'takes rooms',
  },
  'joins no other node': { seeds: () => [] },
  'waits too long for silent nodes': {
    port: (port) => ({
      ...port,
      received: () => 0,
      call: (node, message, options) => port.call(node, message, { ...options, timeoutMs: 20_000 }),
    }),
  },
  'accepts members with another cookie': { anyCookie: true, breaks: 'another cookie' },
  'logs each message that it refuses': {
    log: (log) => ({
      ...log,
      warn: (event, fields) => {
        log.warn(event, fields);
        log.warn(event, fields);
      },
    }),
    breaks: 'logged twice a minute: actor.refused',
  },
  'takes every member for one of its own release': {
    speaks: () => true,
    breaks: 'which its release does not know',
  },
  'never forgets rooms that have ended': {
    ...losing((message) => message.type === 'announce' && message.removed !== undefined),
    breaks: 'rooms, of which',
  },
  'leaves timers behind': { keeps: 'timers', breaks: 'timers' },
  'leaves sockets behind': { keeps: 'sockets', breaks: 'sockets' },
  'leaves actors behind': { keeps: 'actors', breaks: 'actors' },
};
