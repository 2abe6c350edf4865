import { describe, expect, test } from '@jest/globals';
import { Speakers } from './speakers.js';

const FRAME_MS = 20;
const sound = (amplitude: number): Int16Array =>
  Int16Array.from({ length: 96 }, (_, i) => (i % 2 ? 1 : -1) * amplitude);

/** Four people with camera and microphone, two of whom are shown. */
function room() {
  const people = ['ann', 'bob', 'cid', 'dee'];
  const cameras = people.map((origin) => `${origin} camera`);
  const speakers = new Speakers(2);
  const tracks = people.flatMap((origin) =>
    ['camera', 'microphone'].map((kind) => ({ id: `${origin} ${kind}`, origin })),
  );
  speakers.setTracks(tracks);
  let now = 0;
  const speaks = (origin: string, ms: number, amplitude = 3_000): void => {
    for (const endMs = now + ms; now < endMs; now += FRAME_MS) {
      for (const one of people) speakers.heard(`${one} microphone`, sound(one === origin ? amplitude : 20), now);
    }
  };
  return { speakers, cameras, tracks, speaks, shown: () => speakers.choose(cameras) };
}

describe('more pictures than tiles', () => {
  test('shows the first pictures until another person speaks, who takes the tile that was silent longest', () => {
    const { speaks, shown } = room();
    expect(shown()).toEqual(['ann camera', 'bob camera']);
    speaks('bob', 1_000);
    speaks('ann', 1_000);
    expect(shown()).toEqual(['ann camera', 'bob camera']);
    speaks('dee', 1_000);
    expect(shown()).toEqual(['ann camera', 'dee camera']);
    speaks('cid', 1_000);
    expect(shown()).toEqual(['cid camera', 'dee camera']);
    // Nothing changes while the people shown speak or everyone is silent.
    speaks('dee', 1_000);
    speaks('', 5_000);
    expect(shown()).toEqual(['cid camera', 'dee camera']);
  });

  test('does not take noise or a cough for speech', () => {
    const { speaks, shown } = room();
    speaks('dee', 5_000, 40);
    speaks('cid', 60);
    expect(shown()).toEqual(['ann camera', 'bob camera']);
  });

  test('gives the tile of a person who leaves to the last speaker', () => {
    const { speakers, cameras, tracks, speaks, shown } = room();
    speaks('dee', 1_000);
    speaks('cid', 1_000);
    speaks('ann', 1_000);
    expect(shown()).toEqual(['ann camera', 'cid camera']);
    speakers.setTracks(tracks.filter(({ origin }) => origin !== 'cid'));
    expect(speakers.choose(cameras.filter((id) => id !== 'cid camera'))).toEqual(['ann camera', 'dee camera']);
  });
});

test('shows everyone in order when there are enough tiles', () => {
  const { speakers, cameras, speaks } = room();
  speaks('bob', 1_000);
  expect(speakers.choose(cameras.slice(0, 2))).toEqual(['ann camera', 'bob camera']);
  expect(speakers.choose([])).toEqual([]);
});
