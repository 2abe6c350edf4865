'use server';
import { bloom, openRoom } from './bloom.js';

/** Gives a token to anybody who presses the button; a real application would first ask who they are. */
export async function takeSeat(name) {
  const { id } = await openRoom();
  const { token, websocketUrl } = await bloom.addPeer(id, { metadata: { name: String(name) } });
  return { token, url: websocketUrl };
}
