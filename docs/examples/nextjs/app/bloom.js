import { BloomApiError, BloomClient } from '@bloom/server-sdk';

const { BLOOM_URL = 'http://127.0.0.1:5002', BLOOM_TOKEN = 'development' } = process.env;
const ROOM = 'nextjs';

/** For server code only: it knows the API token. */
export const bloom = new BloomClient({ url: BLOOM_URL, token: BLOOM_TOKEN });

/** Returns this example's room, creating it if it does not exist. */
export async function openRoom() {
  try {
    return await bloom.getRoom(ROOM);
  } catch (error) {
    if (!(error instanceof BloomApiError && error.status === 404)) throw error;
    return (await bloom.createRoom({ roomId: ROOM })).room;
  }
}
