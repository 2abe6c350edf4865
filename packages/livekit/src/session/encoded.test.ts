import { expect, test } from '@jest/globals';
import {
  ConnectionQuality,
  ConnectionQualityUpdate,
  JoinResponse,
  ParticipantInfo,
  ParticipantInfo_State,
  SignalResponse,
} from '@livekit/protocol';
import fc from 'fast-check';
import type { EndpointTrack } from '@bloom/rooms';
import { codePoint, fuzzRuns } from '@bloom/time/testing';
import type { ParticipantRecord } from '../record.js';
import { track } from '../testing/scripted-client.js';
import { encodeJoin, encodeParticipant, encodeQualities, encodeUpdate, type ParticipantState } from './encoded.js';
import { describeParticipant } from './participant-info.js';
import { trackInfo } from './track-info.js';

const record: ParticipantRecord = {
  identity: 'ann',
  name: 'Ann',
  kind: 'agent',
  metadata: 'm'.repeat(300),
  attributes: { mood: 'good' },
  joinedAt: 1_700_000_000_123,
  clientProtocol: 1,
  capabilities: [1, 2],
};
const tracks = [track('mic', 'audio'), track('cam', 'video', { encodings: ['l', 'h'] }), track('screen')];
const state = { sid: 'PA_1', state: ParticipantInfo_State.ACTIVE, version: 300 };

test.each([0, 1, 3])('says of a participant with %i tracks what its description says, each time', (count) => {
  const own = tracks.slice(0, count);
  const infos = own.map((each) => trackInfo(each, each.trackId === 'screen' ? 1 : 0));
  for (const version of [300, 301]) {
    const described = describeParticipant(record, { ...state, version, tracks: infos });
    const encoded = encodeParticipant(record, { ...state, version, tracks: own });
    expect(ParticipantInfo.fromBinary(encoded).toJson()).toEqual(described.toJson());
  }
});

test('takes the source of a track from its position, which differs between what sessions have seen', () => {
  const screen = tracks.slice(2);
  const [alone] = ParticipantInfo.fromBinary(encodeParticipant(record, { ...state, tracks: screen })).tracks;
  const [, second] = ParticipantInfo.fromBinary(
    encodeParticipant(record, { ...state, tracks: tracks.slice(1) }),
  ).tracks;
  expect([alone?.toJson(), second?.toJson()]).toEqual([
    trackInfo(screen[0]!, 0).toJson(),
    trackInfo(screen[0]!, 1).toJson(),
  ]);
});

test('describes a track that has changed once for all sessions, and anew after the next change', () => {
  let described = 0;
  const metadata = {
    get source() {
      described += 1;
      return 'camera';
    },
  };
  const shared = track('shared', 'video', { metadata });
  const muted = (publisher: boolean) => ({ ...shared, muted: { publisher } });
  const isMuted = (publisher: boolean) =>
    ParticipantInfo.fromBinary(encodeParticipant(record, { ...state, tracks: [muted(publisher)] })).tracks[0]?.muted;
  expect(isMuted(true)).toBe(true);
  const once = described;
  expect(isMuted(true)).toBe(true);
  expect(described).toBe(once);
  expect(isMuted(false)).toBe(false);
});

test('describes no track again because of how many others there are, whose encodings end with them', () => {
  let described = 0;
  const metadata = {
    get source() {
      described += 1;
      return 'camera';
    },
  };
  const others = Array.from({ length: 4_096 }, (_, i) => track(`other-${i}`));
  const first = track('first', 'video', { metadata });
  encodeParticipant(record, { ...state, tracks: [first] });
  const once = described;
  for (const other of others) encodeParticipant(record, { ...state, tracks: [other] });
  encodeParticipant(record, { ...state, tracks: [first] });
  expect(described).toBe(once);
});

test('encodes once what several sessions say of a participant, until one says something else', () => {
  const says = (rest: Partial<ParticipantState>, own: readonly EndpointTrack[] = tracks) =>
    encodeParticipant(record, { ...state, ...rest, tracks: own.map((each) => ({ ...each })) });
  const first = says({});
  expect(says({})).toBe(first);
  expect(encodeUpdate([says({})])).toBe(encodeUpdate([first]));
  for (const [rest, own] of [
    [{ sid: 'PA_2' }],
    [{ state: ParticipantInfo_State.DISCONNECTED }],
    [{ version: 301 }],
    [{ disconnectReason: 1 }],
    [{}, tracks.slice(1)],
    [{}, [tracks[0]!, tracks[2]!, tracks[1]!]],
  ] as const) {
    says({});
    expect(says(rest, own)).not.toEqual(first);
  }
});

test('names many others in a join and in an update', () => {
  const others = Array.from({ length: 500 }, (_, i) => encodeParticipant(record, { ...state, sid: `PA_${i}`, tracks }));
  const join = SignalResponse.fromBinary(encodeJoin(new JoinResponse({ serverVersion: 'v' }), others)).message;
  expect(join).toMatchObject({ case: 'join', value: { serverVersion: 'v' } });
  const update = SignalResponse.fromBinary(encodeUpdate(others)).message;
  for (const named of [
    join.case === 'join' ? join.value.otherParticipants : [],
    update.case === 'update' ? update.value.participants : [],
  ])
    expect(named.map(({ sid }) => sid)).toEqual(others.map((_, i) => `PA_${i}`));
});

const text = fc.string({ unit: codePoint(fc), maxLength: 300 });
const sid = fc.stringMatching(/^[A-Za-z0-9_]{0,200}$/);

test('writes of any participant what the library writes', () => {
  const anybody = fc.record({
    name: text,
    metadata: text,
    attributes: fc.dictionary(text, text),
    joinedAt: fc.maxSafeNat(),
  });
  const anyState = fc.record({
    sid,
    state: fc.nat(3),
    version: fc.nat(2 ** 31 - 1),
    disconnectReason: fc.nat(14),
  });
  fc.assert(
    fc.property(anybody, anyState, text, (known, rest, name) => {
      const someone = { ...record, ...known };
      const cameras = [track('any', 'video', { metadata: { name } })];
      const infos = [trackInfo(cameras[0]!, 0)];
      const bytes = encodeParticipant(someone, { ...rest, tracks: cameras });
      const described = describeParticipant(someone, { ...rest, tracks: infos });
      expect(ParticipantInfo.fromBinary(bytes).equals(described)).toBe(true);
    }),
    { numRuns: fuzzRuns(100) },
  );
});

test('writes of any qualities what the library writes', () => {
  const anyQuality = fc.record({
    participantSid: sid,
    quality: fc.constantFrom(ConnectionQuality.POOR, ConnectionQuality.EXCELLENT, ConnectionQuality.LOST),
    score: fc.float({ noNaN: true }),
  });
  fc.assert(
    fc.property(fc.array(anyQuality), (updates) => {
      const { message } = SignalResponse.fromBinary(encodeQualities(updates));
      expect(
        message.case === 'connectionQuality' && message.value.equals(new ConnectionQualityUpdate({ updates })),
      ).toBe(true);
    }),
    { numRuns: fuzzRuns(100) },
  );
});
