import { describe, expect, test } from '@jest/globals';
import { DataPacket } from '@livekit/protocol';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { sidOf } from '../names.js';
import { native, ScriptedClient } from '../testing/scripted-client.js';

type Packet = ConstructorParameters<typeof DataPacket>[0];

const user = (text: string, more: object = {}): Packet => ({
  value: { case: 'user', value: { payload: Buffer.from(text), ...more } as never },
});

/** Returns what a client's packets become, as receivers and decoded packets. */
function delivered(client: ScriptedClient, ...packets: (Packet | Uint8Array)[]) {
  client.took('media');
  for (const packet of packets) {
    const data = packet instanceof Uint8Array ? packet : new DataPacket(packet).toBinary();
    client.input({ type: 'dataPacket', peerId: 'me', label: '_reliable', data });
  }

  return client
    .took('media')
    .flatMap(({ command }) =>
      command.type === 'sendPacket' ? [{ ...command, packet: DataPacket.fromBinary(command.data) }] : [],
    );
}

const room = (change: ConstructorParameters<typeof Object>[0] = {}): ScriptedClient =>
  new ScriptedClient().join(
    [native('bob'), native('eve'), { id: 'p1', type: 'webrtc', metadata: null, tracks: [] }],
    change,
  );

describe('data', () => {
  test('sends to all others of this face, on the channel of its kind, with the true sender', () => {
    const forged = {
      ...user('hi', { participantIdentity: 'bob' }),
      participantIdentity: 'bob',
      participantSid: 'PA_bob',
    };
    expect(delivered(room(), forged)).toMatchObject([
      {
        peerIds: ['peer-bob', 'peer-eve'],
        label: '_reliable',
        packet: {
          participantIdentity: 'ann',
          participantSid: sidOf('PA', 'me'),
          value: { case: 'user', value: { participantIdentity: 'ann', participantSid: sidOf('PA', 'me') } },
        },
      },
    ]);
  });

  test.each([
    ['identities of the packet', { ...user('hi'), destinationIdentities: ['eve', 'nobody'] }],
    ['identities of the message', user('hi', { destinationIdentities: ['eve'] })],
    ['sids of the message', user('hi', { destinationSids: [sidOf('PA', 'peer-eve')] })],
  ])('sends only to the receivers that it names, by the %s', (_how, packet) => {
    expect(delivered(room(), packet)).toMatchObject([{ peerIds: ['peer-eve'] }]);
  });

  test.each([
    ['for somebody who is not there', { ...user('hi'), destinationIdentities: ['nobody'] }],
    ['for more than 1,000 others', { ...user('hi'), destinationIdentities: ['eve', ...Array(1_000).fill('bob')] }],
    ['without a message', {}],
    ['of the server itself', { value: { case: 'speaker', value: { speakers: [] } as never } } as Packet],
    ['that only agents may send', { value: { case: 'transcription', value: {} as never } } as Packet],
    ['that cannot be decoded', Buffer.from('garbage')],
  ])('drops %s', (_what, packet) => {
    expect(delivered(room(), packet)).toEqual([]);
  });

  test('drops packets that have too many fields together, and takes more a second later', () => {
    const client = room();
    const packets = Array.from({ length: 55 }, () => user('x', { destinationIdentities: Array(990).fill('eve') }));
    expect(delivered(client, ...packets)).toHaveLength(50);
    client.input({ type: 'timer', name: 'hold' });
    expect(delivered(client, ...packets)).toHaveLength(20);
  });

  test('logs that a client sends packets of too many fields, each of which takes two bytes', () => {
    const client = room();
    client.asked = [];
    const data = Buffer.alloc(64_000, Buffer.from([(5 << 3) | 2, 0]));
    client.input({ type: 'dataPacket', peerId: 'me', label: '_reliable', data });
    expect(client.asked).toMatchObject([
      { type: 'warn', event: 'livekit.frame_ignored' },
      { type: 'setTimer', name: 'hold', ms: 1_000 },
    ]);
  });

  test('passes a packet once, even if a client that has resumed repeats it', () => {
    const packets = [1, 2, 2, 1, 3].map((sequence) => ({ ...user(String(sequence)), sequence }));
    expect(delivered(room(), ...packets).map(({ packet }) => packet.sequence)).toEqual([1, 2, 3]);
  });

  test('tells a client that resumes which packet arrived last', () => {
    const client = room();
    delivered(client, { ...user('x'), sequence: 7 });
    client.input({ type: 'clientEvent', text: 'r' });
    expect(client.heard('reconnect')).toMatchObject([{ lastMessageSeq: 7 }]);
  });

  test('drops the data of a client without the permission', () => {
    const client = room();
    const permissions = { publish: ['audio' as const], subscribe: true, metadata: true };
    client.input({ type: 'setPublishes', kinds: ['audio'], permissions });
    expect(delivered(client, user('hi'))).toEqual([]);
  });

  test('makes a client that has lost reliable messages start over', () => {
    const client = room();
    client.input({ type: 'dataChannelClosed', peerId: 'me', label: '_reliable', reason: 'backlog' });
    expect(client.heard('leave')).toHaveLength(1);
  });

  test('survives any bytes', () => {
    const client = room();
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (data) => {
        for (const { packet } of delivered(client, data)) expect(packet.participantIdentity).toBe('ann');
      }),
      { numRuns: fuzzRuns(500) },
    );
  });
});
