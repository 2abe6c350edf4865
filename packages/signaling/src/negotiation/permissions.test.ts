// What a client learns about its permissions.
import { expect, test } from '@jest/globals';
import type { PeerPermissions } from '@bloom/rooms';
import { ScriptedClient } from '../testing/scripted-client.js';

const ALL: PeerPermissions = { publish: true, subscribe: true, metadata: true };
const LISTENER: PeerPermissions = { publish: ['data'], subscribe: true, metadata: false };

/** Returns the permissions that the client has been told, as JSON. */
function told(client: ScriptedClient): string[] {
  return client.heard().flatMap((event) => (event.startsWith('permissions') ? [event] : []));
}

test('tells a client that asks its permissions right after it has joined, and again when they change', () => {
  const client = new ScriptedClient({ permissions: ALL }).joinWith(['permissions']);
  expect(told(client)).toEqual(['permissions audio,video,data subscribe metadata']);
  client.input({ type: 'setPublishes', kinds: [], permissions: LISTENER });
  expect(told(client)).toEqual(['permissions data subscribe']);
});

test('announces permissions that change before the client has joined once it has', () => {
  const client = new ScriptedClient({ permissions: ALL });
  client.input({ type: 'setPublishes', kinds: [], permissions: LISTENER });
  client.joinWith(['permissions']);
  expect(told(client)).toEqual(['permissions data subscribe']);
});

test('does not tell other clients about permissions', () => {
  const client = new ScriptedClient({ permissions: ALL }).join();
  client.input({ type: 'setPublishes', kinds: [], permissions: LISTENER });
  expect(told(client)).toEqual([]);
});
