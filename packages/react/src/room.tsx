import {
  RoomClient,
  RoomClientError,
  type ClientState,
  type ConnectOptions,
  type LocalTrack,
  type MediaState,
  type Permissions,
  type PersonStatus,
  type RemotePeer,
  type RemoteTrack,
  watchPeople,
} from '@bloom/client';
import {
  createContext,
  type ReactElement,
  type ReactNode,
  useCallback,
  useContext,
  useEffect,
  useState,
  useSyncExternalStore,
} from 'react';

/** A room, as returned by `useRoom`. */
export interface Room<PeerMetadata = unknown, TrackMetadata = unknown> {
  readonly client: RoomClient<PeerMetadata, TrackMetadata>;
  readonly state: ClientState;
  /** Why the call ended or could not start. */
  readonly error: RoomClientError | null;
}

const NO_PEERS: readonly never[] = [];
const NO_TRACKS: readonly LocalTrack[] = [];
const NO_MEDIA: MediaState = { state: 'idle', path: null, problem: null, reason: null };

const RoomContext = createContext<RoomClient | null>(null);

/** Asks the backend for a seat. Without a seat there is no call. */
export type SeatRequest = () => Promise<ConnectOptions | null> | ConnectOptions | null;

/**
 * Joins the room of the token and leaves it when the component unmounts. Without options it waits, for example until a
 * token has been fetched. Another token means another call.
 *
 * A function is called once per component, even in React's StrictMode, which mounts it twice; later renderings may pass
 * another one. Its failure becomes the `error` of the room.
 */
export function useRoom<PeerMetadata = unknown, TrackMetadata = unknown>(
  options: ConnectOptions | SeatRequest | null | undefined,
): Room<PeerMetadata, TrackMetadata> {
  const [client] = useState(() => new RoomClient<PeerMetadata, TrackMetadata>());
  const [error, setError] = useState<RoomClientError | null>(null);
  const state = useClient(client, () => client.state, 'idle');
  const isRequest = typeof options === 'function';
  const { url, token } = isRequest ? {} : (options ?? {});

  useEffect(() => {
    if (options === null || options === undefined) return undefined;
    let mounted = true;
    const stopListening = client.on('ended', setError);
    const join = async (): Promise<void> => {
      setError(null);
      let seat: ConnectOptions | null;
      try {
        seat = typeof options === 'function' ? await options() : options;
      } catch (failure) {
        if (mounted) setError(noSeat(failure));
        return;
      }
      // The `ended` event reports the failure too.
      if (mounted && seat !== null) client.connect(seat).catch(() => undefined);
    };
    // StrictMode mounts twice in a row: a call that is left at once would be refused when it returns.
    const start = setTimeout(() => void join());
    return () => {
      mounted = false;
      clearTimeout(start);
      stopListening();
      client.leave();
    };
    // oxlint-disable-next-line react/exhaustive-deps -- a new object with the same token is the same call
  }, [client, url, token, isRequest]);

  return { client, state, error };
}

/** Provides a room to the components below it. */
export function RoomProvider({ room, children }: { readonly room: Room; readonly children: ReactNode }): ReactElement {
  return <RoomContext.Provider value={room.client}>{children}</RoomContext.Provider>;
}

/**
 * Returns the client of the nearest `RoomProvider`.
 * @throws Error outside a provider.
 */
export function useRoomClient<PeerMetadata = unknown, TrackMetadata = unknown>(): RoomClient<
  PeerMetadata,
  TrackMetadata
> {
  const client = useContext(RoomContext);
  if (client === null) throw new Error('no <RoomProvider> above this component');
  return client as RoomClient<PeerMetadata, TrackMetadata>;
}

/** Returns the others in the room, in order of arrival. */
export function usePeers<Metadata = unknown, TrackMetadata = unknown>(): readonly RemotePeer<
  Metadata,
  TrackMetadata
>[] {
  const client = useRoomClient<Metadata, TrackMetadata>();
  return useClient(client, () => client.peers, NO_PEERS);
}

/** Returns whether packets can pass to the server; show `reason` while `state` is `failed`. */
export function useMediaState(): MediaState {
  const client = useRoomClient();
  return useClient(client, () => client.media, NO_MEDIA);
}

/** Returns who speaks and how well media passes, measured once a second by `watchPeople` of `@bloom/client`. */
export function usePeopleStatus(): readonly PersonStatus[] {
  const client = useRoomClient();
  const [people, setPeople] = useState<readonly PersonStatus[]>([]);
  useEffect(() => watchPeople(client, setPeople), [client]);
  return people;
}

/** Returns what the backend allows this participant; null until the server has reported it. */
export function usePermissions(): Permissions | null {
  const client = useRoomClient();
  return useClient(client, () => client.permissions, null);
}

/** Returns the tracks that this participant publishes. */
export function useLocalTracks(): readonly LocalTrack[] {
  const client = useRoomClient();
  return useClient(client, () => client.localTracks, NO_TRACKS);
}

/** Returns all others' tracks that have media, of one kind or both. */
export function useTracks<Metadata = unknown>(kind?: 'audio' | 'video'): readonly RemoteTrack<Metadata>[] {
  return usePeers<unknown, Metadata>()
    .flatMap(({ tracks }) => tracks)
    .filter((track) => track.media !== null && (kind === undefined || track.kind === kind));
}

function useClient<Value>(client: Pick<RoomClient, 'on'>, read: () => Value, onServer: Value): Value {
  const subscribe = useCallback((changed: () => void) => client.on('changed', changed), [client]);
  return useSyncExternalStore(subscribe, read, () => onServer);
}

function noSeat(failure: unknown): RoomClientError {
  if (failure instanceof RoomClientError) return failure;
  return new RoomClientError('FAILED', `no seat: ${failure instanceof Error ? failure.message : String(failure)}`);
}
