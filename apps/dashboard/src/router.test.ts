import { expect, test } from '@jest/globals';
import { hashOf, inviteLink, type Route, routeOf } from './router.js';

test.each<[string, Route]>([
  ['#/rooms', { view: 'rooms' }],
  ['#/rooms/kitchen', { view: 'rooms', roomId: 'kitchen' }],
  ['#/rooms/kitchen/people/0f-3', { view: 'rooms', roomId: 'kitchen', peerId: '0f-3' }],
  ['#/logs', { view: 'logs' }],
  ['#room=Room-7', { view: 'call', roomId: 'Room-7' }],
  ['#watch=Room-7', { view: 'watch', roomId: 'Room-7' }],
])('%s parses to its view, which has this address', (hash, route) => {
  expect(routeOf(hash)).toEqual(route);
  expect(hashOf(route)).toBe(hash);
});

test('an unknown address shows the rooms', () => {
  for (const hash of ['', '#', '#/', '#/nowhere', '#/rooms/../x', '#x=y'])
    expect(routeOf(hash)).toEqual({ view: 'rooms' });
});

test('a link with an invalid id names no room', () => {
  for (const id of ['', '../x', 'a%2Fb', 'a b']) {
    expect(routeOf(`#room=${id}`)).toEqual({ view: 'call' });
    expect(routeOf(`#watch=${id}`)).toEqual({ view: 'watch' });
  }
});

test('an invitation keeps the address of the page', () => {
  expect(inviteLink('https://media.example/bloom/?x=1#/rooms', 'kitchen')).toBe(
    'https://media.example/bloom/?x=1#room=kitchen',
  );
});
