import { describe, expect, test } from '@jest/globals';
import { nameOf, trackMetadataOf } from './call-view.js';

describe('metadata that anybody may have written', () => {
  test('a name is trimmed and cut, and a stranger without one is a guest', () => {
    expect(nameOf({ name: '  Ann ' }, 'abcdef')).toBe('Ann');
    expect(nameOf({ name: 'x'.repeat(100) }, 'abcdef')).toHaveLength(40);
    for (const metadata of [null, undefined, 7, 'Ann', [], { name: 3 }, { name: ' ' }]) {
      expect(nameOf(metadata, 'abcdef')).toBe('Guest abcd');
    }
  });

  test('a track is active unless it says otherwise', () => {
    expect(trackMetadataOf({ source: 'camera', active: false })).toEqual({ source: 'camera', active: false });
    for (const metadata of [null, 1, 'x', [], { source: 'toaster' }]) {
      expect(trackMetadataOf(metadata)).toEqual({ source: null, active: true });
    }
  });
});
