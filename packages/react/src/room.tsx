import {
  RoomClient,
  RoomClientError,
  type ClientState,
  type ConnectOptions,
  type LocalTrack,
  type RemotePeer,
  type RemoteTrack,
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
export interface Room {
  readonly client: RoomClient;
  readonly state: ClientState;
  /** Why the call ended or could not start. */
  readonly error: RoomClientError | null;
}

const NO_PEERS: readonly RemotePeer[] = [];
const NO_TRACKS: readonly LocalTrack[] = [];

const RoomContext = createContext<RoomClient | null>(null);

/** Asks the backend for a seat. Without a seat there is no call. */
export type SeatRequest = () => Promise<ConnectOptions | null> | ConnectOptions | null;

/**
 * Joins the room of the token and leaves it when the component unmounts. Without options it waits: a token that arrives
 * later, from a fetch, is used then. Another token means another call.
 *
 * A function is called once per component, even in React's StrictMode, which mounts it twice; later renderings may pass
 * another one. Its failure becomes the `error` of the room.
 */
export function useRoom(options: ConnectOptions | SeatRequest | null | undefined): Room {
  const [client] = useState(() => new RoomClient());
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
      // `ended` reports the failure too.
      if (mounted && seat !== null) client.connect(seat).catch(() => undefined);
    };
    // StrictMode mounts twice in a row: a call that is left immediately would be refused when it returns.
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
export function useRoomClient(): RoomClient {
  const client = useContext(RoomContext);
  if (client === null) throw new Error('no <RoomProvider> above this component');
  return client;
}

/** Returns the others in the room, in order of arrival. */
export function usePeers(): readonly RemotePeer[] {
  const client = useRoomClient();
  return useClient(client, () => client.peers, NO_PEERS);
}

/** Returns the tracks that this participant publishes. */
export function useLocalTracks(): readonly LocalTrack[] {
  const client = useRoomClient();
  return useClient(client, () => client.localTracks, NO_TRACKS);
}

/** Returns all others' tracks that have media, of one kind or both. */
export function useTracks(kind?: 'audio' | 'video'): readonly RemoteTrack[] {
  return usePeers()
    .flatMap(({ tracks }) => tracks)
    .filter(({ media }) => media !== null && (kind === undefined || media.kind === kind));
}

function useClient<Value>(client: RoomClient, read: () => Value, onServer: Value): Value {
  const subscribe = useCallback((changed: () => void) => client.on('changed', changed), [client]);
  return useSyncExternalStore(subscribe, read, () => onServer);
}

function noSeat(failure: unknown): RoomClientError {
  if (failure instanceof RoomClientError) return failure;
  return new RoomClientError('FAILED', `no seat: ${failure instanceof Error ? failure.message : String(failure)}`);
}
