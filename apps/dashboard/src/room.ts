// Rooms opened by the page itself.
import { BloomApiError, type BloomClient, type CreatedPeer, type Room } from '@bloom/server-sdk';

/** Rooms opened by the page are removed this many seconds after everyone has left. */
const PURGE_AFTER_S = 300;

/** Creates the room unless it exists. */
async function openRoom(api: BloomClient, roomId: string, config: { videoCodec?: 'h264' } = {}): Promise<void> {
  try {
    await api.createRoom({ roomId, peerlessPurgeTimeout: PURGE_AFTER_S, ...config });
  } catch (error) {
    if (!(error instanceof BloomApiError) || !error.message.endsWith('room already exists')) throw error;
  }
}

/** Starts to stream a room, creating it if necessary. */
export async function startStream(api: BloomClient, roomId: string): Promise<void> {
  // H.264 costs the stream least: rooms of any codec can be streamed.
  await openRoom(api, roomId, { videoCodec: 'h264' });
  await api.addComponent(roomId, 'hls', { lowLatency: true, anyCodec: true });
}

/** Starts to record a room, whatever its people send. */
export async function startRecording(api: BloomClient, roomId: string): Promise<void> {
  await api.addComponent(roomId, 'recording', { anyCodec: true });
}

/** Takes a seat in a room, creating the room if it does not exist or no longer exists. */
export async function takeSeat(api: BloomClient, roomId: string, isNew: boolean): Promise<CreatedPeer> {
  if (isNew) await openRoom(api, roomId);
  try {
    return await api.addPeer(roomId);
  } catch (error) {
    if (!(error instanceof BloomApiError) || error.status !== 404) throw error;
    await openRoom(api, roomId);
    return api.addPeer(roomId);
  }
}

/** Returns how many people are in a room: not those who have a seat and are not, or no longer, connected. */
export function peopleIn({ peers }: Room): number {
  return peers.filter(({ status }) => status === 'connected').length;
}
