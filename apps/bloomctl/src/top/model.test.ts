import { describe, expect, test } from '@jest/globals';
import { top } from '../testing/index.js';
import { type Key, newModel, pressed, rowsOf, type TopModel, withItem, withLost } from './model.js';

const nodes = ['a@sfu-1.internal', 'b@sfu-2.internal'];
const start = top.reduce(withItem, newModel(nodes, 2_000, 'queue'));
const press = (model: TopModel, ...keys: (string | Partial<Key>)[]): TopModel =>
  keys.reduce<TopModel>(
    (before, key) => pressed(before, typeof key === 'string' ? { input: key } : { input: '', ...key }).model,
    model,
  );
const paths = (model: TopModel): string[] => rowsOf(model).map(({ actor }) => actor.path.split('/').at(-1) ?? '');

describe('the full-screen view', () => {
  test('shows the longest mailbox first, and s sorts by the next figure and resubscribes', () => {
    expect(paths(start)).toEqual(['recording-1', 'zoe']);
    const { model, effect } = pressed(start, { input: 's' });
    expect(model.sort).toBe('in');
    expect(effect).toEqual({ do: 'resubscribe' });
    expect(paths(model)).toEqual(['zoe', 'recording-1']);
    expect(press(start, 's', 's', 's', 's').sort).toBe('queue');
  });

  test('filters by the text typed after a slash', () => {
    const typing = press(start, '/', 'z', 'o', 'x', { backspace: true });
    expect(typing.typing).toBe(true);
    expect(typing.filter).toBe('zo');
    expect(paths(typing)).toEqual(['zoe']);
    expect(press(typing, 'q').filter).toBe('zoq');
    const kept = press(typing, { enter: true });
    expect(kept.typing).toBe(false);
    expect(kept.filter).toBe('zo');
    expect(press(typing, { escape: true }).filter).toBe('');
    expect(press(kept, { escape: true }).filter).toBe('');
  });

  test('n moves from node to node and back to all', () => {
    const first = press(start, 'n');
    expect(first.focus).toBe(nodes[0]);
    expect(paths(first)).toEqual(['zoe']);
    expect(press(start, 'n', 'n').focus).toBe(nodes[1]);
    expect(press(start, 'n', 'n', 'n').focus).toBeNull();
  });

  test('opens the actor on a line, and q closes it before it quits the program', () => {
    expect(pressed(start, { input: '2' }).effect).toEqual({
      do: 'open',
      node: nodes[0],
      path: '/rooms/hall/peers/zoe',
    });
    expect(pressed(start, { input: '9' }).effect).toBeUndefined();
    const open = { ...start, open: { path: '/x', node: nodes[0] as string, lines: [] } };
    expect(pressed(open, { input: 'q' })).toEqual({ model: { ...open, open: null } });
    expect(pressed(start, { input: 'q' }).effect).toEqual({ do: 'quit' });
    expect(pressed(press(start, '/'), { input: 'c', ctrlC: true }).effect).toEqual({ do: 'quit' });
  });

  test('does not change while paused', () => {
    const paused = press(start, 'p');
    const later = { ...(top[0] as (typeof top)[0]), loopP99Ms: 99 };
    expect(withItem(paused, later)).toBe(paused);
    expect(withItem(press(paused, 'p'), later).items.get(nodes[0] as string)?.loopP99Ms).toBe(99);
  });

  test('keeps the last data of a lost node until it is back', () => {
    const lost = withLost(start, nodes[1] as string, 'gone');
    expect(lost.lost.get(nodes[1] as string)).toBe('gone');
    expect(paths(lost)).toEqual(['recording-1', 'zoe']);
    expect(withItem(lost, top[1] as (typeof top)[0]).lost.size).toBe(0);
  });
});
