import { expect, test } from '@jest/globals';
import { callLink, hashOf, invitationIn, inviteLink, type Route, routeOf } from './router.js';

test.each<[string, Route]>([
  ['#/rooms', { view: 'rooms' }],
  ['#/rooms/kitchen', { view: 'rooms', roomId: 'kitchen' }],
  ['#/rooms/kitchen/people/0f-3', { view: 'rooms', roomId: 'kitchen', peerId: '0f-3' }],
  ['#/logs', { view: 'logs' }],
  ['#room=Room-7', { view: 'call', roomId: 'Room-7' }],
  ['#watch=Room-7', { view: 'watch', roomId: 'Room-7' }],
])('parses %s to its view, which has this address', (hash, route) => {
  expect(routeOf(hash)).toEqual(route);
  expect(hashOf(route)).toBe(hash);
});

test('shows the rooms for an unknown address', () => {
  for (const hash of ['', '#', '#/', '#/nowhere', '#/rooms/../x', '#x=y'])
    expect(routeOf(hash)).toEqual({ view: 'rooms' });
});

test('names no room for a link with an invalid id', () => {
  for (const id of ['', '../x', 'a%2Fb', 'a b']) {
    expect(routeOf(`#room=${id}`)).toEqual({ view: 'call' });
    expect(routeOf(`#watch=${id}`)).toEqual({ view: 'watch' });
  }
});

test('keeps the address of the page in a link', () => {
  const page = 'https://media.example/bloom/?x=1#/rooms';
  expect(callLink(page, 'kitchen')).toBe('https://media.example/bloom/?x=1#room=kitchen');
  expect(inviteLink(page, 'eyJp.c2ln-_')).toBe('https://media.example/bloom/?x=1#invitation=eyJp.c2ln-_');
});

test('finds an invitation in an address only after its marker', () => {
  expect(invitationIn('#invitation=eyJp.c2ln-_')).toBe('eyJp.c2ln-_');
  expect(invitationIn('#/rooms/invitation')).toBeUndefined();
  expect(invitationIn('#room=invitation')).toBeUndefined();
});
