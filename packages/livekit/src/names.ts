import { createHash } from 'node:crypto';

/** Names of rooms that can be used as ids unchanged. */
const PLAIN = /^[A-Za-z0-9-]+$/;
/** Begins the ids of rooms with other names; REST rooms with such ids cannot be reached here. */
const DERIVED = 'lk--';
const MAX_SLUG = 24;
const HASH_LENGTH = 26;
const SID_LENGTH = 16;
/** Number of sids of each kind that are kept. */
const MAX_KNOWN = 4_096;
const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';
const BASE62 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

/** Returns the id of the room with this name: the name itself if it can be an id. */
export function roomIdOf(name: string): string {
  if (PLAIN.test(name) && !name.startsWith(DERIVED)) return name;
  const slug = name.replace(/[^A-Za-z0-9]+/g, '-').slice(0, MAX_SLUG);

  return `${DERIVED}${slug}-${encode(digest(name), BASE32, HASH_LENGTH)}`;
}

/** Every session in a room derives the sids of all the others. By prefix, then by id. */
const known = { PA: new Map<string, string>(), TR: new Map<string, string>(), RM: new Map<string, string>() };

/**
 * Returns LiveKit's id of a participant, a track or a room: a hash of Bloom's own id, so that every node derives the
 * same.
 */
export function sidOf(prefix: 'PA' | 'TR' | 'RM', id: string): string {
  const sids = known[prefix];
  let sid = sids.get(id);
  if (sid === undefined) {
    sid = `${prefix}_${encode(digest(id), BASE62, SID_LENGTH)}`;
    if (sids.size >= MAX_KNOWN) sids.clear();
    sids.set(id, sid);
  }

  return sid;
}

/** Returns the sid of a room; a later room with the same id has another one. `createdAt`: Unix milliseconds. */
export function roomSid(roomId: string, createdAt: number): string {
  return sidOf('RM', `${roomId} ${createdAt}`);
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** Writes one character for each of the first bytes. */
function encode(bytes: Buffer, alphabet: string, length: number): string {
  let text = '';
  for (let i = 0; i < length; i++) text += alphabet[bytes[i]! % alphabet.length];

  return text;
}
