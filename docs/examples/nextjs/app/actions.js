'use server';
import { bloom, openRoom } from './bloom.js';

/** A token for whoever presses the button: a real application would ask first who it is. */
export async function takeSeat(name) {
  const { id } = await openRoom();
  const { token, websocketUrl } = await bloom.addPeer(id, { metadata: { name: String(name) } });
  return { token, url: websocketUrl };
}
