import type { ClientMediaEvent, MediaRoomEvent } from '@bloom/sfu';
import { INTERNAL_ERROR } from '../peer/close-reason.js';
import type { PeerRecord } from '../peer/peer-record.js';
import { MediaFaults } from './dropped-media.js';
import type { Endpoints } from './endpoints.js';
import type { RoomJournal } from './room-journal.js';
import type { RoomWorld } from './room-world.js';

export interface MediaEventsOptions {
  endpoints: Endpoints;
  world: RoomWorld;
  journal: RoomJournal;
  /** Ends a peer whose media endpoint is beyond repair. */
  crashPeer: (peerId: string, reason: string) => void;
  /** Ends the room after an internal failure. */
  crash: () => void;
  disconnect: (peer: PeerRecord, why: 'media_lost' | 'silent') => void;
}

/** Applies what the media plane reports to a room's peers. */
export class MediaEvents {
  readonly #options: MediaEventsOptions;
  readonly #faults: MediaFaults;

  constructor(options: MediaEventsOptions) {
    this.#options = options;
    this.#faults = new MediaFaults(() => options.world.log);
  }

  handle(event: MediaRoomEvent): void {
    const { endpoints, world, journal, crashPeer, crash } = this.#options;
    if (!world.isCurrent(event)) return;
    switch (event.type) {
      case 'dataMessage': {
        const { peerId, label, to, data } = event;
        return world.notify({ type: 'dataMessage', roomId: endpoints.roomId, peerId, label, to, data });
      }
      case 'messageChannel':
        return endpoints.setMessageChannel(event);
      case 'bFrames':
      case 'bareKeyframes':
        return this.#faults.unplayable(event, endpoints.ownerOf(event.trackId));
      case 'mediaDropped':
        return this.#faults.dropped(event);
      case 'transportFailed':
        return crashPeer(event.peerId, event.reason);
      case 'transportLost':
        return this.#transportLost(event.peerId, event.reason);
      case 'trackStalled':
        return endpoints.setStalled(event);
      case 'connectionQuality':
        return endpoints.qualityChanged(event);
      case 'mediaState':
        // The journal has dropped a removed peer, and would otherwise keep it for as long as the room.
        if (endpoints.peers.has(event.peerId)) journal.mediaState(event.peerId, event.media);
        return undefined;
      case 'transportSilent':
        return this.#transportSilent(event.peerId);
      case 'roomFailed':
        world.log.warn('room.media_failed', { reason: event.reason });
        return crash();
      default:
        return this.#ofClient(event);
    }
  }

  #ofClient(event: ClientMediaEvent): void {
    const { endpoints, journal } = this.#options;
    if (event.type === 'dtlsConnected') journal.mediaUp(event.peerId);
    if (event.type === 'voiceActivity' && event.peerId === undefined) return endpoints.voiceChanged(event);
    if (event.peerId !== undefined) endpoints.sendIfJoined(event.peerId, event);
  }

  /** Disconnects a peer whose media worker has ended: the client connects again with the same token. */
  #transportLost(peerId: string, reason: string): void {
    const { endpoints, world, disconnect } = this.#options;
    const peer = endpoints.peers.get(peerId);
    if (peer?.connection === undefined) return;
    world.log.warn('peer.transport_lost', { peerId, reason });
    world.closeSocket(peer.connection.socket, 1011, INTERNAL_ERROR);
    disconnect(peer, 'media_lost');
  }

  /** Disconnects a peer whose media path is silent, unless it has a websocket, where pings show whether it is alive. */
  #transportSilent(peerId: string): void {
    const { endpoints, world, journal, disconnect } = this.#options;
    const peer = endpoints.peers.get(peerId);
    if (peer === undefined) return;
    journal.silent(peerId);
    if (peer.connection?.client !== 'http') return;
    world.closeSocket(peer.connection.socket, 1000, 'No sign of life');
    disconnect(peer, 'silent');
  }
}
