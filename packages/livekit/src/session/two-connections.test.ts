// Clients with two connections: the server offers the one on which they receive.
import { beforeEach, describe, expect, test } from '@jest/globals';
import { DisconnectReason } from '@livekit/protocol';
import { directions, native, ScriptedClient, track } from '../testing/scripted-client.js';

let client: ScriptedClient;
let offers = 0;

beforeEach(() => {
  client = new ScriptedClient();
  offers = 0;
});

/** Returns the server's offer; fails without exactly one. */
function offered(): { sdp: string; id: number; midToTrackId: Record<string, string> } {
  const [offer, ...more] = client.heard('offer');
  if (offer === undefined || more.length > 0) throw new Error(`${more.length + Number(offer !== undefined)} offers`);
  offers += 1;

  return offer;
}

/** Answers an offer as a browser does. `refusing`: mids that it cannot play. */
function answer({ sdp, id }: { sdp: string; id: number }, refusing: readonly string[] = [], setup = 'active'): void {
  const [head = '', ...sections] = sdp.split(/(?=^m=)/m);
  const answered = sections.map((section) => {
    const mid = /^a=mid:(\S+)/m.exec(section)?.[1] ?? '';
    const inverted = section.replace('a=sendonly', 'a=recvonly').replace('a=setup:actpass', `a=setup:${setup}`);
    return refusing.includes(mid)
      ? inverted.replace(/^(m=\w+) 9/, '$1 0').replace('a=recvonly', 'a=inactive')
      : inverted;
  });
  client.request({ case: 'answer', value: { type: 'answer', sdp: [head, ...answered].join(''), id } as never });
}

/** Lets the media plane apply the answer. */
function applied(): void {
  client.input({ type: 'negotiated', generation: offers, receiver: true });
}

const join = (tracks: ReturnType<typeof track>[] = []) =>
  client.join(tracks.length === 0 ? [] : [native('bob', tracks)], { twoConnections: true });

describe('the offers of the server', () => {
  test('leave the client the role of the DTLS server if it answers so', () => {
    join();
    answer(offered(), [], 'passive');
    expect(client.took('negotiate')).toMatchObject([{ negotiation: { passive: true } }]);
  });

  test('begin with a connection for data, and add what others publish', () => {
    join();
    const first = offered();
    expect(directions(first.sdp)).toEqual([]);
    answer(first);
    const [negotiate] = client.took('negotiate');
    expect(negotiate?.negotiation).toMatchObject({
      receiver: true,
      inbound: [],
      outbound: [],
      data: { opens: [{ label: '_reliable' }, { label: '_lossy', kind: { ordered: false, maxRetransmits: 0 } }] },
    });
    applied();
    client.input({ type: 'endpointAdded', endpoint: native('bob', [track('t1'), track('t2', 'audio')]) });
    const second = offered();
    expect(second.id).toBe(2);
    expect(directions(second.sdp)).toEqual(['sendonly', 'sendonly']);
    expect(Object.keys(second.midToTrackId)).toEqual(['1', '2']);
    answer(second);
    expect(client.took('negotiate')[0]?.negotiation.outbound).toMatchObject([
      { mid: '1', trackId: 't1', codec: { name: 'vp8', payloadType: 96, rtxPayloadType: 97 } },
      { mid: '2', trackId: 't2', codec: { name: 'opus' } },
    ]);
  });

  test('have redundant sound before Opus, which flows where the client takes it, and none of encrypted tracks', () => {
    join([track('t1', 'audio'), track('t2', 'audio', { metadata: { encryption: 'gcm' } })]);
    const { sdp, id, ...rest } = offered();
    expect(sdp.match(/^m=audio .*$/gm)).toEqual([
      'm=audio 9 UDP/TLS/RTP/SAVPF 63 111',
      'm=audio 9 UDP/TLS/RTP/SAVPF 111',
    ]);
    expect(sdp).toContain('a=rtpmap:63 red/48000/2\r\na=fmtp:63 111/111\r\n');
    answer({ sdp, id, ...rest });
    expect(client.took('negotiate')[0]?.negotiation.outbound).toMatchObject([
      { trackId: 't1', codec: { name: 'opus', redPayloadType: 63 } },
      { trackId: 't2', codec: { name: 'opus' } },
    ]);
  });

  test('have no redundant sound for a client that does not take it', () => {
    join([track('t1', 'audio')]);
    const offer = offered();
    answer({ ...offer, sdp: offer.sdp.replace(' 63 111', ' 111').replace(/^a=(?:rtpmap|fmtp):63 .*\r\n/gm, '') });
    const [slot] = client.took('negotiate')[0]?.negotiation.outbound ?? [];
    expect(slot?.codec.name).toBe('opus');
    expect(slot?.codec.redPayloadType).toBeUndefined();
  });

  test('wait for the answer to the last one, and then contain all changes', () => {
    join();
    const first = offered();
    client.input({ type: 'endpointAdded', endpoint: native('bob', [track('t1')]) });
    client.input({ type: 'tracksAdded', endpointId: 'peer-bob', tracks: [track('t2')] });
    expect(client.heard('offer')).toEqual([]);
    answer(first);
    expect(directions(offered().sdp)).toEqual(['sendonly', 'sendonly']);
  });

  test('make the section of an ended track inactive once before another track uses it', () => {
    join([track('t1')]);
    answer(offered());
    applied();
    client.input({ type: 'tracksRemoved', endpointId: 'peer-bob', trackIds: ['t1'] });
    client.input({ type: 'tracksAdded', endpointId: 'peer-bob', tracks: [track('t2')] });
    const second = offered();
    expect(directions(second.sdp)).toEqual(['inactive']);
    answer(second);
    const third = offered();
    expect(directions(third.sdp)).toEqual(['sendonly']);
    // Browsers keep the id of the section's first track.
    expect(third.sdp).toMatch(/a=msid:PA_\w+\|TR_\w+ TR_\w+/);
    answer(third);
    expect(client.took('negotiate').at(-1)?.negotiation.outbound).toMatchObject([{ mid: '1', trackId: 't2' }]);
  });

  test.each([
    ['av1', ''],
    ['vp8', '10[23]'],
  ])(
    'have both codecs of a track with a second encoding, and the first one of the answer is sent: %s',
    (name, lacks) => {
      join([track('t1', 'video', { codec: 'av1', fallback: 'vp8' })]);
      const offer = offered();
      expect(offer.sdp).toContain('m=video 9 UDP/TLS/RTP/SAVPF 102 103 96 97\r\n');
      const codecLines = new RegExp(`a=(?:rtpmap|fmtp|rtcp-fb):(?:${lacks || 'none'}) .*\r\n`, 'g');
      const types = lacks === '' ? ' 102 103 96 97' : ' 96 97';
      answer({ ...offer, sdp: offer.sdp.replace(' 102 103 96 97', types).replace(codecLines, '') });
      expect(client.took('negotiate')[0]?.negotiation.outbound).toMatchObject([{ trackId: 't1', codec: { name } }]);
    },
  );

  test('do not repeat a track that the client cannot play', () => {
    join([track('t1', 'video', { codec: 'h264' }), track('t2')]);
    answer(offered(), ['1']);
    expect(client.took('negotiate')[0]?.negotiation.outbound).toMatchObject([{ mid: '2', trackId: 't2' }]);
    applied();
    client.input({ type: 'timer', name: 'hold' });
    expect(client.heard('offer')).toEqual([]);
  });

  test('restart ICE when the client returns, whether or not it has answered', () => {
    join([track('t1')]);
    const first = offered();
    client.input({ type: 'clientEvent', text: 'r' });
    const again = client.heard('offer')[0];
    const ufragOf = (sdp = '') => /a=ice-ufrag:(\S+)/.exec(sdp)?.[1];
    expect(ufragOf(again?.sdp)).not.toBe(ufragOf(first.sdp));
    answer(first);
    expect(client.took('negotiate')).toEqual([]);
    answer({ sdp: again?.sdp ?? '', id: 0 });
    expect(client.took('negotiate')).toHaveLength(1);
  });

  test.each(['answered', 'not answered'])('wait for a client that is away and has %s the last one', (how) => {
    join([track('t1')]);
    const first = offered();
    if (how === 'answered') answer(first);
    client.input({ type: 'clientEvent', text: 'a' });
    client.input({ type: 'endpointAdded', endpoint: native('eve', [track('t2')]) });
    client.input({ type: 'timer', name: 'offer' });
    expect(client.frames.filter(({ case: which }) => which === 'offer' || which === 'leave')).toEqual([]);
    client.input({ type: 'clientEvent', text: 'r' });
    expect(directions(offered().sdp)).toEqual(['sendonly', 'sendonly']);
    expect(client.took('setTimer').at(-1)).toEqual({ type: 'setTimer', name: 'offer', ms: 15_000 });
  });

  test('end a client that answers none for 15 seconds', () => {
    join();
    offered();
    expect(client.took('setTimer')).toContainEqual({ type: 'setTimer', name: 'offer', ms: 15_000 });
    client.input({ type: 'timer', name: 'offer' });
    expect(client.heard('leave')).toMatchObject([{ reason: DisconnectReason.STATE_MISMATCH }]);
  });
});

test('a client with two connections publishes on its own, which carries nothing of others', () => {
  join([track('t1')]);
  answer(offered());
  applied();
  client.took('negotiate');
  client.request({ case: 'addTrack', value: { cid: 'cam', type: 1, source: 1 } as never });
  client.offer([{ kind: 'video', direction: 'sendonly', cid: 'cam' }]);
  const [negotiate] = client.took('negotiate');
  expect(negotiate?.negotiation).toMatchObject({ inbound: [{ mid: '0' }], outbound: [] });
  expect(negotiate?.negotiation.receiver).toBeUndefined();
  expect(client.heard('mediaSectionsRequirement')).toEqual([]);
});
