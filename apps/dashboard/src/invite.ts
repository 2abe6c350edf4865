// The room of an invitation lives in the hash of the address: `#room=<id>`. It never reaches a server's log.

/** Returns the room that an address invites to, or undefined. Ids are letters, digits and hyphens. */
export function invitedRoom(hash: string): string | undefined {
  const id = new URLSearchParams(hash.replace(/^#/, '')).get('room');
  return id !== null && /^[A-Za-z0-9-]+$/.test(id) ? id : undefined;
}

/** Returns the address that invites to a room, from the address of this page. */
export function inviteLink(pageAddress: string, roomId: string): string {
  const url = new URL(pageAddress);
  url.hash = `room=${roomId}`;
  return url.href;
}
