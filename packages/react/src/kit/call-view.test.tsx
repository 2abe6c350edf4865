// The whole call in React itself, as a person uses it: by names of buttons, texts and keys.
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { person, TestRoom } from '../testing/room.js';
import { openCallMedia } from './call-media.js';
import { CallView } from './call-view.js';
import type { JoiningMedia } from './preview.js';

let room: TestRoom;
let media: JoiningMedia;
beforeEach(async () => {
  room = await TestRoom.open();
  media = { ...(await openCallMedia()), on: { camera: true, microphone: true } };
});
afterEach(() => room.close());

const show = (change: Partial<JoiningMedia> = {}): Promise<void> =>
  room.show(<CallView title="kitchen" name="Ann" media={{ ...media, ...change }} />);
const names = (): (string | null)[] => room.all('figure').map((figure) => figure.getAttribute('aria-label'));
const front = (): (string | null)[] => room.all('figure[data-front]').map((one) => one.getAttribute('aria-label'));

describe('a call', () => {
  test('starts with what the preview had on, and reads the heading first', async () => {
    await show({ on: { camera: false, microphone: true } });
    expect(room.devices.live).toContain('audio default');
    expect(room.all('button', 'Start picture')).toHaveLength(1);
    expect(room.all('button', 'Mute')).toHaveLength(1);
    expect(document.activeElement?.textContent).toBe('kitchen');
  });

  test('counts people only once it is connected, and no components', async () => {
    room.client.become('connecting');
    await show();
    expect(room.text).not.toContain('only you');
    await room.does(() => room.client.become('connected'));
    expect(room.text).toContain('only you');
    await room.does(() => room.client.have(person('Bob'), { ...person('Stream'), type: 'hls' }));
    expect(room.text).toContain('2 people');
    expect(names()).toEqual(['Bob', 'Ann (you)']);
  });

  test('says that it is recorded for as long as it is', async () => {
    await show();
    expect(room.text).not.toContain('Recorded');
    await room.does(() => room.client.have(person('Bob'), { ...person('Recording'), type: 'recording' }));
    expect(room.text).toContain('Recorded');
    await room.does(() => room.client.have(person('Bob')));
    expect(room.text).not.toContain('Recorded');
  });

  test('says in words that media does not pass, and what helps', async () => {
    await show();
    const status = (): string | null => room.one('[role=status].bloom-status').textContent;
    expect(status()).toBe('Connected');
    await room.does(() => room.client.become('connected', { state: 'failed', reason: 'Leave the VPN.' }));
    expect(status()).toBe('No picture and sound');
    expect(room.one('[role=alert]').textContent).toBe('Picture and sound do not pass. Leave the VPN.');
    await room.does(() => room.client.become('reconnecting', { state: 'idle', reason: null }));
    expect(status()).toBe('Reconnecting …');
    expect(room.all('[role=alert]')).toEqual([]);
  });

  test('mutes, stops the picture and leaves by its buttons, which say what they do next', async () => {
    await show();
    await room.press('Mute');
    await room.press('Stop picture');
    expect(room.devices.live).toEqual([]);
    await room.press('Unmute');
    expect(room.devices.live).toEqual(['audio default']);
    await room.press('Leave');
    expect(room.client.sent).toContain('left');
  });

  test('has no button for a screen where browsers cannot share one', async () => {
    room.install({ navigator: { mediaDevices: undefined } });
    await show({ on: { camera: false, microphone: false } });
    expect(room.all('button', 'Share screen')).toEqual([]);
  });

  test('shows why a device does not start until the person dismisses it', async () => {
    await show();
    await room.press('Stop picture');
    room.devices.answer = () => Promise.reject(Object.assign(new Error(), { name: 'NotReadableError' }));
    await room.press('Start picture');
    expect(room.text).toContain('The camera does not start: no camera: another program has it');
    await room.press('Dismiss');
    expect(room.text).not.toContain('does not start');
  });

  test('offers to play sound that the browser holds back', async () => {
    await show();
    let played = 0;
    await room.does(() => room.client.say('audioBlocked', () => (played += 1)));
    await room.press('Play sound');
    expect(played).toBe(1);
    expect(room.all('button', 'Play sound')).toEqual([]);
  });
});

describe('the tiles', () => {
  test('tiles show a name and initials instead of the picture of a camera that is off', async () => {
    await show();
    await room.does(() =>
      room.client.have(person('Bob Lee', { camera: { muted: true }, microphone: { muted: true } })),
    );
    const tile = room.one('figure', 'Bob Lee');
    expect(tile.querySelector('.bloom-avatar')?.textContent).toBe('BL');
    expect(tile.querySelector('[role=img]')?.getAttribute('aria-label')).toBe('muted');
    expect(tile.querySelector('video')?.style.visibility).toBe('hidden');
    await room.does(() => room.client.have(person('Bob Lee', { camera: {}, microphone: {} })));
    expect(tile.querySelector('.bloom-avatar')).toBeNull();
    expect(tile.querySelector('[role=img]')).toBeNull();
    expect(tile.querySelector('video')?.style.visibility).toBe('');
  });

  test('put a shared screen in front by themselves, and go back to the grid after it', async () => {
    await show();
    await room.does(() => room.client.have(person('Bob', { camera: {} }), person('Eve', { screen: {} })));
    expect(front()).toEqual(['Screen of Eve']);
    await room.press('Grid view');
    expect(front()).toEqual([]);
    await room.does(() => room.client.have(person('Bob', { camera: {}, screen: {} })));
    expect(front()).toEqual(['Screen of Bob']);
    await room.does(() => room.client.have(person('Bob', { camera: {} })));
    expect(front()).toEqual([]);
  });

  test('put the last speaker in front if the person wants that', async () => {
    const people = (speaking: string): void =>
      room.client.have(
        ...['Bob', 'Eve', 'Kim'].map((name) =>
          person(name, { camera: {}, microphone: { speaking: name === speaking } }),
        ),
      );
    await show();
    await room.press('Speaker view');
    expect(front()).toEqual(['Ann (you)']);
    await room.does(() => people(''));
    expect(front()).toEqual(['Bob']);
    await room.does(() => people('Kim'));
    expect(front()).toEqual(['Kim']);
    await room.does(() => people(''));
    await room.does(() => people('Eve'));
    expect(names()).toEqual(['Eve', 'Kim', 'Bob', 'Ann (you)']);
  });

  test('tiles keep a pinned person in front until unpinned or gone', async () => {
    await show();
    await room.does(() => room.client.have(person('Bob', { camera: {} }), person('Eve', { screen: {} })));
    const pin = room.one('figure', 'Bob').querySelector<HTMLElement>('.bloom-menu button') as HTMLElement;
    await room.does(() => pin.click());
    expect(front()).toEqual(['Bob']);
    expect(pin.getAttribute('aria-pressed')).toBe('true');
    await room.does(() => pin.click());
    expect(front()).toEqual(['Screen of Eve']);
    await room.does(() => pin.click());
    await room.does(() => room.client.have(person('Kim')));
    expect(front()).toEqual([]);
  });

  test('tiles keep a person in front who was pinned before the camera started', async () => {
    await show();
    await room.does(() => room.client.have(person('Bob'), person('Eve', { camera: {} })));
    const pin = room.one('figure', 'Bob').querySelector<HTMLElement>('.bloom-menu button') as HTMLElement;
    await room.does(() => pin.click());
    await room.does(() => room.client.have(person('Bob', { camera: {} }), person('Eve', { camera: {} })));
    expect(front()).toEqual(['Bob']);
    expect(room.one('figure', 'Bob').querySelector('[aria-pressed=true]')?.textContent).toBe('Unpin');
  });

  test('tiles have a menu with the quality of a picture that comes in several', async () => {
    const wishes: string[] = [];
    room.client.setVariant = (id, variant) => wishes.push(`${id} ${variant}`);
    room.client.setPaused = () => undefined;
    await show();
    await room.does(() => room.client.have(person('Bob', { camera: { variants: ['l', 'h'] } })));
    expect(room.one('button', 'Options of Bob').getAttribute('aria-expanded')).toBe('false');
    await room.fill('Quality of the picture of Bob', 'l');
    expect(wishes).toEqual(['bob-camera l']);
  });

  test('tiles are laid out by area, and those that do not fit beside the one in front are counted', async () => {
    await show();
    await room.does(() => room.client.have(person('Bob', { camera: {} })));
    expect(room.all('figure').map(({ style: { left, width, height } }) => [left, width, height])).toEqual([
      ['0px', '636px', '795px'],
      ['644px', '636px', '795px'],
    ]);
    await room.does(() => room.client.have(...Array.from({ length: 12 }, (_, i) => person(`P${i}`))));
    await room.press('Speaker view');
    const shown = room.all('figure').length;
    await room.press(`${13 - shown} more`);
    expect(room.all('figure')).toHaveLength(13);
  });
});

describe('the chat', () => {
  const write = (text: string): void => room.client.say('data', { label: 'chat', from: 'bob', data: text });
  const button = (): string =>
    room
      .all('button')
      .map(({ textContent }) => textContent ?? '')
      .find((text) => text.startsWith('Chat')) ?? '';

  test('counts what was not read, in words too', async () => {
    await show();
    expect(button()).toBe('Chat');
    await room.does(() => {
      room.client.have(person('Bob'));
      write('hello');
      write('there');
    });
    expect(button()).toBe('Chat2 unread');
    await room.does(() =>
      room
        .all('button')
        .find(({ textContent }) => textContent === button())
        ?.click(),
    );
    expect(button()).toBe('Chat');
    await room.does(() => write('again'));
    expect(button()).toBe('Chat');
    expect(room.all('.bloom-messages li').map(({ textContent }) => textContent)).toEqual([
      'Bob hello',
      'Bob there',
      'Bob again',
    ]);
  });

  test('takes the focus to its field, sends, and returns the focus', async () => {
    await show();
    room.one('button', 'Chat').focus();
    await room.press('Chat');
    expect(document.activeElement?.getAttribute('aria-label')).toBe('Message');
    await room.fill('Message', 'Good morning');
    await room.does(() =>
      room.one('form').dispatchEvent(new window.Event('submit', { bubbles: true, cancelable: true })),
    );
    await room.settle();
    expect(room.client.sent).toContain('chat Good morning');
    await room.does(() => {
      room.one('aside').dispatchEvent(new window.KeyboardEvent('keydown', { key: 'Escape', bubbles: true }));
    });
    expect(room.all('aside')).toEqual([]);
  });

  test('announces what happens to screen readers', async () => {
    await show();
    const news = (): string | null => room.one('[aria-live]').textContent;
    await room.does(() => room.client.have(person('Bob', { microphone: {} })));
    await room.does(() => room.client.say('peerJoined', person('Bob')));
    expect(news()).toBe('Bob joined');
    await room.does(() => room.client.have(person('Bob', { microphone: { muted: true } })));
    expect(news()).toBe('Bob turned the microphone off');
    await room.does(() => write('hello'));
    expect(news()).toBe('Bob says: hello');
    await room.does(() => room.client.say('peerLeft', person('Bob')));
    expect(news()).toBe('Bob left');
  });
});
