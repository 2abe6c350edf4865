// The room of an invitation lives in the hash of the address: `#room=<id>`. It never reaches a server's log.

/** The room that an address invites to, or undefined. Ids are letters, digits and hyphens. */
export function invitedRoom(hash: string): string | undefined {
  const id = new URLSearchParams(hash.replace(/^#/, '')).get('room');
  return id !== null && /^[A-Za-z0-9-]+$/.test(id) ? id : undefined;
}

/** The address that invites to a room, made out of the address of this page. */
export function inviteLink(pageAddress: string, roomId: string): string {
  const url = new URL(pageAddress);
  url.hash = `room=${roomId}`;
  return url.href;
}
