import { expect, test } from '@jest/globals';
import type { Endpoint } from '@bloom/rooms';
import { peerEndpoint, ScriptedClient, videoTrack } from '../testing/scripted-client.js';
import { MAX_CONNECTED_LENGTH } from './newcomer.js';

/** An endpoint as large as the metadata limits allow: 256 KiB on four tracks. */
const heavy = (id: string): Endpoint =>
  peerEndpoint(id, ...[1, 2, 3, 4].map((n) => videoTrack(`${id}:${n}`, { metadata: 'x'.repeat(65_000) })));

test('lets a newcomer into a room full of metadata and sends the metadata of modest participants', () => {
  const client = new ScriptedClient();
  const sent: string[] = [];
  const handle = client.session.handle.bind(client.session);
  client.session.handle = (input) => {
    const actions = handle(input);
    for (const action of actions) if (action.type === 'send') sent.push(action.text);
    return actions;
  };
  const modest = Array.from({ length: 20 }, (_, i) =>
    peerEndpoint(`modest-${i}`, videoTrack(`m${i}`, { metadata: i })),
  );
  client.join(...Array.from({ length: 20 }, (_, i) => heavy(`heavy-${i}`)), ...modest);
  const [connected] = sent.map((text) => JSON.parse(text) as { type: string; data: { otherEndpoints: Endpoint[] } });
  const { otherEndpoints = [] } = connected?.data ?? {};
  expect(otherEndpoints).toHaveLength(40);
  expect(otherEndpoints.filter(({ metadata }) => metadata === null)).toHaveLength(18);
  for (const { id } of modest) {
    expect(otherEndpoints.find((endpoint) => endpoint.id === id)?.metadata).toEqual({ name: id });
  }
  expect(sent.length).toBeGreaterThan(1);
  for (const text of sent) expect(text.length).toBeLessThan(1.1 * MAX_CONNECTED_LENGTH);
});
