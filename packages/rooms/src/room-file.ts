import type { RoomIdentity } from './passes.js';

/** Name of the file beside a recording that identifies its room, because ids are reused. */
export const ROOM_FILE = 'about.json';

/** Returns the text of a room file. */
export function roomFile({ roomId, createdAt }: RoomIdentity): string {
  return `${JSON.stringify({ room_id: roomId, created_at: createdAt })}\n`;
}

/** Returns the room in a room file; undefined for any other text. */
export function readRoomFile(text: string): RoomIdentity | undefined {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { room_id: roomId, created_at: createdAt } = (json ?? {}) as Record<string, unknown>;

  return typeof roomId === 'string' && typeof createdAt === 'number' ? { roomId, createdAt } : undefined;
}
