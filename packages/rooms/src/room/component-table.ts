import type { Component, ReceivedTrack } from './component-kind.js';
import { jsonEqual } from '../json-equal.js';
import { type Expected, knownTracks, peerView, trackInfo, type PeerRecord } from '../peer/peer-record.js';
import type { Endpoint, EndpointTrack } from '../peer/peer-session.js';
import type { ComponentType } from '../component-schemas.js';
import type { ComponentView } from '../room-service.js';

/** A room's record of one component. */
export interface ComponentRecord {
  readonly id: string;
  readonly type: ComponentType;
  /** What the API's caller gave, secrets included; only for another node. */
  readonly options: Readonly<Record<string, unknown>>;
  properties: Record<string, unknown>;
  /** How the component chooses tracks; null = it receives none. */
  readonly subscribeMode: 'auto' | 'manual' | null;
  /** Endpoints chosen through the API. */
  readonly origins: Set<string>;
  readonly tracks: Map<string, EndpointTrack>;
  /** Tracks that it published where the room ran before, until it publishes them here or is no longer expected to. */
  expected?: Pick<Expected, 'tracks'> | undefined;
  readonly running: Component;
  /** Tracks passed to the last `receive`. */
  received?: readonly ReceivedTrack[];
  /** Number of tracks that it would receive if they were not encrypted end to end. */
  encrypted?: number;
}

interface Rerouted {
  readonly component: ComponentRecord;
  readonly tracks: ReceivedTrack[];
  readonly withheld: number;
}

/** The components of one room. */
export class ComponentTable {
  readonly #components = new Map<string, ComponentRecord>();

  get trackCount(): number {
    let count = 0;
    for (const component of this.#components.values()) count += knownTracks(component).length;

    return count;
  }

  get(id: string): ComponentRecord | undefined {
    return this.#components.get(id);
  }

  all(): ComponentRecord[] {
    return [...this.#components.values()];
  }

  count(type: ComponentType): number {
    return this.all().filter((component) => component.type === type).length;
  }

  add(component: ComponentRecord): void {
    this.#components.set(component.id, component);
  }

  remove(id: string): void {
    this.#components.delete(id);
    this.forget(id);
  }

  /** Forgets the subscriptions to an endpoint that has gone: its id is never reused. */
  forget(origin: string): void {
    for (const component of this.#components.values()) component.origins.delete(origin);
  }

  ownerOf(trackId: string): string | undefined {
    return this.all().find(({ tracks, expected }) => tracks.has(trackId) || expected?.tracks.has(trackId) === true)?.id;
  }

  /** Counts the tracks that components receive: all but their own, or those of the chosen endpoints. */
  subscriptions(peers: ReadonlyMap<string, PeerRecord>): number {
    let count = 0;
    for (const { id, subscribeMode, origins } of this.#components.values()) {
      if (subscribeMode === null) continue;
      const chosen = (origin: string): boolean => origin !== id && (subscribeMode === 'auto' || origins.has(origin));
      for (const peer of peers.values()) if (chosen(peer.id)) count += peer.tracks.size;
      for (const other of this.#components.values()) if (chosen(other.id)) count += other.tracks.size;
    }

    return count;
  }

  /**
   * Returns the components whose received tracks changed since the last call, with the new tracks and the number of
   * those that are withheld from it since then because they are encrypted.
   */
  rerouted(peers: ReadonlyMap<string, PeerRecord>): Rerouted[] {
    const changes: Rerouted[] = [];
    for (const component of this.#components.values()) {
      if (component.subscribeMode === null) continue;
      const tracks: ReceivedTrack[] = [];
      let encrypted = 0;
      for (const source of [...peers.values(), ...this.#components.values()]) {
        if (source.id === component.id) continue;
        if (component.subscribeMode === 'manual' && !component.origins.has(source.id)) continue;
        // Callers are people, whom no publisher can name; recordings and streams are the backend's.
        if (component.type === 'sip' && 'audience' in source && source.audience !== undefined) continue;
        const [originType, originMetadata] =
          'running' in source ? [source.type, null] : (['webrtc', peerView(source).metadata] as const);
        for (const track of source.tracks.values()) {
          if (track.encrypted === true) encrypted += 1;
          else tracks.push({ origin: source.id, track, originType, originMetadata });
        }
      }
      const before = component.received ?? [];
      const withheld = Math.max(encrypted - (component.encrypted ?? 0), 0);
      component.encrypted = encrypted;
      const same = before.length === tracks.length && tracks.every((track, i) => isSame(before[i], track));
      if (same && withheld === 0) continue;
      component.received = tracks;
      changes.push({ component, tracks, withheld });
    }

    return changes;
  }

  views(): ComponentView[] {
    return this.all().map(componentView);
  }

  endpoint(component: ComponentRecord): Endpoint {
    return { id: component.id, type: component.type, metadata: null, tracks: [...component.tracks.values()] };
  }

  endpoints(): Endpoint[] {
    return this.all().map((component) => this.endpoint(component));
  }
}

/** Returns the component as the API shows it. */
export function componentView(component: ComponentRecord): ComponentView {
  const { id, type, properties } = component;

  return { id, type, properties, tracks: knownTracks(component).map(trackInfo) };
}

/** The metadata is nearly always the same object. */
function isSame(before: ReceivedTrack | undefined, { track, originMetadata }: ReceivedTrack): boolean {
  return before?.track === track && jsonEqual(before.originMetadata, originMetadata);
}
