import { describe, expect, test } from '@jest/globals';
import { heldBytes } from '@bloom/time/testing';
import { peerEndpoint, ScriptedClient, videoTrack } from '../testing/scripted-client.js';

const SESSIONS = 20;
const LISTENERS = 2_000;

describe('endpoints without tracks', () => {
  test('cost each other session less than 64 bytes, so that thousands fit in a room', () => {
    const listeners = Array.from({ length: LISTENERS }, (_, i) => peerEndpoint(`listener-${i}`));
    const { held, bytes } = heldBytes(() =>
      Array.from({ length: SESSIONS }, () => {
        const { session } = new ScriptedClient();
        session.handle({ type: 'clientEvent', text: '{"type":"connect","data":{"metadata":null}}' });
        session.handle({ type: 'joined', endpoints: listeners });
        // Until the next input a session holds the text of its last events.
        session.handle({ type: 'othersMoved' });
        return session;
      }),
    );
    expect(bytes / LISTENERS / held.length).toBeLessThan(64);
  });

  test('are announced, updated and removed, also after they have published', async () => {
    const client = new ScriptedClient().join(peerEndpoint('a'), peerEndpoint('b'));
    client.heard();
    client.input({ type: 'endpointUpdated', endpointId: 'a', metadata: 1 });
    client.input({ type: 'endpointRemoved', endpointId: 'a' });
    client.input({ type: 'endpointAdded', endpoint: peerEndpoint('a') });
    expect(client.heard()).toEqual(['endpointUpdated a', 'endpointRemoved a', 'endpointAdded a']);

    client.input({ type: 'tracksAdded', endpointId: 'a', tracks: [videoTrack('a:v')] });
    await client.cycle();
    client.heard();
    client.input({ type: 'endpointUpdated', endpointId: 'a', metadata: 2 });
    client.input({ type: 'endpointRemoved', endpointId: 'b' });
    expect(client.heard()).toEqual(['endpointUpdated a', 'endpointRemoved b']);
  });

  test('that the client has never heard of are neither updated nor removed', () => {
    const client = new ScriptedClient().join(peerEndpoint('a'));
    client.heard();
    client.input({ type: 'endpointUpdated', endpointId: 'b', metadata: 1 });
    client.input({ type: 'endpointRemoved', endpointId: 'b' });
    client.input({ type: 'tracksAdded', endpointId: 'b', tracks: [videoTrack('b:v')] });
    expect(client.heard()).toEqual([]);
  });

  test('that return while their former tracks are being removed are announced with their latest metadata', async () => {
    const client = new ScriptedClient().join(peerEndpoint('a', videoTrack('a:v')));
    await client.cycle();
    client.input({ type: 'tracksAdded', endpointId: 'a', tracks: [videoTrack('a:w')] });
    client.heard();
    client.input({ type: 'endpointRemoved', endpointId: 'a' });
    client.input({ type: 'endpointAdded', endpoint: peerEndpoint('a') });
    client.input({ type: 'endpointUpdated', endpointId: 'a', metadata: { name: 'later' } });
    expect(client.heard()).toEqual([]);
    await client.cycle();
    const data = { id: 'a', type: 'webrtc', metadata: { name: 'later' } };
    expect(client.takeEvents()).toContainEqual({ type: 'endpointAdded', data });
  });
});
