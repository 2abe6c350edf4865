import { ParticipantInfo, ParticipantInfo_State, Room, type TrackInfo, WebhookEvent } from '@livekit/protocol';
import type { Notification } from '@bloom/protocol';
import type { RoomView } from '@bloom/rooms';
import { sidOf } from '../names.js';
import { believedPeer, recordOf } from '../record.js';
import { describeComponent, describePeer, describeRoom, type Shown } from './views.js';

/** The rooms of this node, as they are while a notification is delivered. */
export interface RoomLookup {
  view(roomId: string): RoomView | undefined;
  /** Unix milliseconds. */
  createdAt(roomId: string): number | undefined;
  /** Returns the ids of the peers whose metadata the backend has set. */
  describedPeers(roomId: string): readonly string[];
  /** Returns what the latest client of a peer is; undefined before its first join. */
  clientOf(roomId: string, peerId: string): string | undefined;
}

/** Somebody of whom the receivers know, or will know once the media is connected. */
interface Somebody {
  info: ParticipantInfo;
  /** `participant_joined` was sent. */
  joined: boolean;
  readonly tracks: Map<string, TrackInfo>;
}

interface Story {
  readonly roomId: string;
  /** The room as it was last seen: it is gone when its end is notified. */
  room: Room;
  readonly people: Map<string, Somebody>;
}

/**
 * Tells the story of each room of this node in the events of LiveKit's webhooks. A participant with LiveKit's client
 * has joined once its media is connected, anybody else once its client has joined; tracks follow the join of their
 * publisher.
 */
export class WebhookEvents {
  readonly #rooms: RoomLookup;
  readonly #stories = new Map<string, Story>();

  constructor(rooms: RoomLookup) {
    this.#rooms = rooms;
  }

  /** Returns the events that a notification causes, in order, without id and time. */
  observe(notification: Notification): WebhookEvent[] {
    const { type, roomId } = notification;
    const view = this.#rooms.view(roomId);
    if (type === 'roomCreated') return this.#begin(view);
    const story = this.#stories.get(roomId);
    if (story === undefined) return [];
    if (view !== undefined) story.room = this.#describe(view);
    switch (type) {
      case 'peerConnected':
        return this.#connected(story, notification.peerId);
      case 'peerMetadataUpdated':
        return this.#metadata(story, notification.peerId);
      case 'peerDisconnected':
        return this.#left(story, notification.peerId);
      case 'trackAdded':
      case 'trackRemoved':
      case 'trackMetadataUpdated':
        return this.#track(story, notification);
      case 'roomDeleted':
      case 'roomCrashed':
        return this.#end(story);
      default:
        return [];
    }
  }

  /** Returns the events that follow when the media of a peer is connected for the first time. */
  mediaUp(roomId: string, peerId: string): WebhookEvent[] {
    const story = this.#stories.get(roomId);
    const who = story?.people.get(peerId);
    if (story === undefined || who === undefined || who.joined) return [];
    who.info = this.#find(roomId, peerId)?.info ?? who.info;

    return join(story, who);
  }

  /** Continues the story of a room that has moved to this node. Those who are connected joined at the former one. */
  adopt(roomId: string): void {
    const view = this.#rooms.view(roomId);
    if (view === undefined) return;
    const { people } = this.#open(view);
    const described = new Set(this.#rooms.describedPeers(roomId));
    for (const peer of view.peers) {
      const client = this.#rooms.clientOf(roomId, peer.id);
      const info = describePeer(believedPeer(peer, described.has(peer.id)), client)?.info;
      if (peer.status !== 'connected' || info === undefined) continue;
      const tracks = peer.tracks.flatMap(({ id }): [string, TrackInfo][] => {
        const track = trackOf(info, id);
        return track === undefined ? [] : [[id, track]];
      });
      people.set(peer.id, { info, joined: true, tracks: new Map(tracks) });
    }
  }

  /** Forgets a room that another node goes on with. */
  forget(roomId: string): void {
    this.#stories.delete(roomId);
  }

  #begin(view: RoomView | undefined): WebhookEvent[] {
    if (view === undefined) return [];

    return [new WebhookEvent({ event: 'room_started', room: this.#open(view).room })];
  }

  #open(view: RoomView): Story {
    const story = { roomId: view.id, room: this.#describe(view), people: new Map() };
    this.#stories.set(view.id, story);

    return story;
  }

  #connected(story: Story, peerId: string): WebhookEvent[] {
    const shown = this.#find(story.roomId, peerId);
    if (shown === undefined) return [];
    const who: Somebody = { info: shown.info, joined: false, tracks: new Map() };
    story.people.set(peerId, who);

    // What a client is, and its name, are known from its join on.
    return isForeign(shown) && this.#rooms.clientOf(story.roomId, peerId) !== undefined ? join(story, who) : [];
  }

  /** Handles new metadata, with which also the join of a client is notified. */
  #metadata(story: Story, peerId: string): WebhookEvent[] {
    const who = story.people.get(peerId);
    const shown = this.#find(story.roomId, peerId);
    if (who === undefined || shown === undefined) return [];
    who.info = shown.info;

    return !who.joined && isForeign(shown) ? join(story, who) : [];
  }

  #track(
    story: Story,
    { type, roomId, owner, track }: Extract<Notification, { type: `track${string}` }>,
  ): WebhookEvent[] {
    const id = 'peerId' in owner ? owner.peerId : owner.componentId;
    const info = this.#find(roomId, id)?.info;
    const known = story.people.get(id);
    if (type === 'trackRemoved') {
      const events = known === undefined ? [] : unpublish(story, known, track.id);
      // A component has no notification for its own end: it has left once it is gone with all its tracks.
      const isGone = 'componentId' in owner && info === undefined && known?.tracks.size === 0;
      return isGone ? [...events, ...this.#left(story, id)] : events;
    }
    if (info === undefined) return [];
    const who = known ?? { info, joined: false, tracks: new Map() };
    who.info = info;
    const described = trackOf(info, track.id);
    if (described === undefined) return [];
    who.tracks.set(track.id, described);
    if (type === 'trackMetadataUpdated') return [];
    if (known === undefined && 'componentId' in owner) {
      story.people.set(id, who);
      return join(story, who);
    }

    return who.joined ? [trackEvent('track_published', story.room, { who, track: described })] : [];
  }

  #left(story: Story, id: string): WebhookEvent[] {
    const who = story.people.get(id);
    if (who === undefined) return [];
    const events = [...who.tracks.keys()].flatMap((trackId) => unpublish(story, who, trackId));
    story.people.delete(id);
    const participant = who.info.clone();
    participant.state = ParticipantInfo_State.DISCONNECTED;
    participant.tracks = [];
    const event = who.joined ? 'participant_left' : 'participant_connection_aborted';

    return [...events, new WebhookEvent({ event, room: story.room, participant })];
  }

  #end(story: Story): WebhookEvent[] {
    const left = [...story.people.keys()].flatMap((id) => this.#left(story, id));
    this.#stories.delete(story.roomId);
    const room = story.room.clone();
    room.numParticipants = 0;
    room.numPublishers = 0;

    return [...left, new WebhookEvent({ event: 'room_finished', room })];
  }

  #describe(view: RoomView): Room {
    return describeRoom(view, this.#rooms.createdAt(view.id) ?? 0);
  }

  /** Returns a peer or component of a room that is shown to LiveKit's clients. */
  #find(roomId: string, id: string): Shown | undefined {
    const { peers = [], components = [] } = this.#rooms.view(roomId) ?? {};
    const component = components.find((each) => each.id === id);
    if (component !== undefined) return describeComponent(component);
    const peer = peers.find((each) => each.id === id);
    if (peer === undefined) return undefined;

    const isDescribed = this.#rooms.describedPeers(roomId).includes(id);
    return describePeer(believedPeer(peer, isDescribed), this.#rooms.clientOf(roomId, id));
  }
}

/** True for a peer of another face. */
function isForeign({ peer }: Shown): boolean {
  return recordOf(peer?.metadata) === undefined;
}

function trackOf({ tracks }: ParticipantInfo, trackId: string): TrackInfo | undefined {
  return tracks.find(({ sid }) => sid === sidOf('TR', trackId));
}

function join({ room }: Story, who: Somebody): WebhookEvent[] {
  who.joined = true;
  const joined = new WebhookEvent({ event: 'participant_joined', room, participant: who.info });

  return [joined, ...[...who.tracks.values()].map((track) => trackEvent('track_published', room, { who, track }))];
}

function unpublish({ room }: Story, who: Somebody, trackId: string): WebhookEvent[] {
  const track = who.tracks.get(trackId);
  who.tracks.delete(trackId);

  return track === undefined || !who.joined ? [] : [trackEvent('track_unpublished', room, { who, track })];
}

/** Like LiveKit's, the events of tracks only name the room and the participant. */
function trackEvent(
  event: string,
  { sid, name }: Room,
  { who: { info }, track }: { who: Somebody; track: TrackInfo },
): WebhookEvent {
  const participant = new ParticipantInfo({ sid: info.sid, identity: info.identity });

  return new WebhookEvent({ event, room: new Room({ sid, name }), participant, track });
}
