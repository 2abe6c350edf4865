// A client whose room moves to another node.
import { expect, test } from '@jest/globals';
import { ScriptedClient } from '../testing/scripted-client.js';

const MOVED = { type: 'moved' };
const ofType = (client: ScriptedClient, type: string) => client.asked().filter((action) => action.type === type);

test('says that a client opens a second connection only if it knows how', () => {
  const [knows, older] = [new ScriptedClient().joinWith(['move']), new ScriptedClient().joinWith(['pause'])];
  const join = { type: 'join', metadata: { name: 'me' }, client: 'bloom' };
  expect(ofType(knows, 'join')).toEqual([{ ...join, moves: true }]);
  expect(ofType(older, 'join')).toEqual([join]);
});

test('tells the client that its room has moved, and that all others have followed', () => {
  const client = new ScriptedClient().joinWith(['move']);
  client.takeEvents();
  client.input({ type: 'roomMoved' });
  client.input({ type: 'othersMoved' });
  expect(client.takeEvents()).toEqual([
    { type: 'roomMoved', data: {} },
    { type: 'othersMoved', data: {} },
  ]);
});

test('passes on that the client has followed its room', () => {
  const client = new ScriptedClient().joinWith(['move']);
  client.asked();
  client.custom('moved', { anything: [1] });
  expect(client.asked()).toEqual([MOVED]);
});

test('ignores that before the client has connected', () => {
  const client = new ScriptedClient();
  client.custom('moved');
  expect(ofType(client, 'moved')).toEqual([]);
});

test('tells where the room goes on without its node, if the client asks for that', () => {
  const [knows, older] = [new ScriptedClient().joinWith(['standby']), new ScriptedClient().joinWith(['move'])];
  for (const client of [knows, older]) {
    client.takeEvents();
    client.input({ type: 'standby', url: 'b.example/socket/peer/websocket' });
  }
  expect(knows.takeEvents()).toEqual([{ type: 'standby', data: { url: 'b.example/socket/peer/websocket' } }]);
  expect(older.takeEvents()).toEqual([]);
});
