import { afterEach, describe, expect, test } from '@jest/globals';
import { runProgram } from '../program.js';
import { closeServers, serveAnswers } from '../testing/http.js';
import { testMachine } from '../testing/machine.js';

afterEach(closeServers);

const TOKEN = 'token-of-the-operator-77';
/** Clears the screen, in the two forms that terminals know. */
const CLEAR = '\u001b[2J\u009b2J';

const track = (id: string, type: string, muted?: boolean) => ({ id, type, metadata: null, muted });
const bob = {
  id: 'b0b',
  type: 'webrtc',
  status: 'connected',
  metadata: { peer: { name: `Bob${CLEAR}` } },
  tracks: [track('v', 'video', true), track('a', 'audio')],
  permissions: { publish: ['audio'], subscribe: true, metadata: false },
};
const config = { roomId: 'hall', maxPeers: 4, videoCodec: null };
const hall = { id: 'hall', config, components: [{ id: 'c', type: 'recording' }], peers: [bob] };

const PART = 'part_2026-11-29T12-00-00.000Z';
const recording = {
  room: 'hall',
  part: PART,
  state: 'uploading',
  progress: 0.42,
  tracks: 2,
  seconds: 61.4,
  bytes: 1_204_000,
  started_at: 1_800_000_000_000,
  uploaded_at: null,
};
const failed = { ...recording, room: 'attic', state: 'failed', reason: `no bucket${CLEAR}`, progress: undefined };
const job = { state: 'queued', layout: 'speaker', width: 640, height: 360, requested_at: 5, ended_at: null };
const mixed = { ...job, state: 'finished', seconds: 61.4, bytes: 2_000_000, file: 'mix.mp4', ended_at: 9 };
const EXPIRES = 1_800_000_000_000;

const ANSWERS = {
  'POST /room/hall/invitation': { data: { token: 'i.i', url: 'https://a/#invitation=i.i', expires_at: EXPIRES } },
  'POST /room/bare/invitation': { data: { token: 'i.i', url: null, expires_at: EXPIRES } },
  'POST /room/hall/viewer': {
    data: { token: 'v.v', hls_url: 'https://a/hls/hall/~v.v/index.m3u8', expires_at: EXPIRES },
  },
  'GET /raw_recording?scope=cluster&limit=50': { data: [recording, failed], unreachable: [`b@host${CLEAR}`] },
  'GET /raw_recording?scope=cluster&room=hall&limit=7': { data: [recording] },
  'GET /raw_recording?scope=cluster&limit=1000': { data: [recording, failed] },
  'GET /raw_recording?scope=cluster&room=cellar&limit=1000': { data: [recording], unreachable: [`b@host${CLEAR}`] },
  [`DELETE /raw_recording/hall/${PART}`]: null,
  [`POST /raw_recording/hall/${PART}/mix`]: { data: job },
  'GET /raw_recording?scope=cluster&room=hall&limit=1000': { data: [{ ...recording, mix: mixed }] },
  [`POST /raw_recording/attic/${PART}/mix`]: { data: job },
  [`POST /raw_recording/cellar/${PART}/mix`]: { data: { ...mixed, missing: [`part_lost${CLEAR}`] } },
  'GET /raw_recording?scope=cluster&room=attic&limit=1000': {
    data: [{ ...failed, mix: { ...job, state: 'failed', reason: `no ffmpeg${CLEAR}`, ended_at: 9 } }],
  },
  'GET /health': { data: { status: 'UP', version: '0.9.0' } },
  'GET /room?scope=cluster': { data: [hall, { ...hall, id: `evil${CLEAR}`, peers: [] }], unreachable: ['b@host'] },
  'GET /room/hall': { data: hall },
  'POST /room': { data: { room: hall, service_address: 'a.example' } },
  'DELETE /room/hall': null,
  'POST /room/hall/peer': {
    data: { peer: bob, token: 't.t', peer_websocket_url: 'h/ws', whip_url: 'http://h/whip', whep_url: 'http://h/whep' },
  },
  'PATCH /room/hall/peer/b0b': { data: bob },
  'DELETE /room/hall/peer/b0b': null,
  'PATCH /room/hall/peer/b0b/track/v': { data: track('v', 'video', true) },
  'PATCH /room/hall/peer/b0b/track/a': { data: track('a', 'audio', true) },
};

async function run(line: string | string[], fields: Parameters<typeof testMachine>[0] = {}, answers: object = {}) {
  const { url, asked } = await serveAnswers({ ...ANSWERS, ...answers });
  const machine = testMachine({ env: { BLOOM_URL: url, BLOOM_TOKEN: TOKEN }, ...fields });
  const exit = await runProgram(typeof line === 'string' ? line.split(' ') : line, machine);
  const { out, err } = machine.printed;
  expect(out + err).not.toContain(TOKEN);
  // oxlint-disable-next-line no-control-regex
  expect(out + err).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
  return { exit, out, err, asked };
}

describe('rooms and people over HTTP', () => {
  test('are listed, whatever they call themselves', async () => {
    const rooms = await run('rooms list');
    expect(rooms.out).toMatch(/^hall +1 of 4 +1 +2 +recording$/m);
    expect(rooms.out).toContain('evil\\u001b[2J\\u009b2J');
    expect(rooms.out).toContain('b@host does not answer: its rooms are missing');
    expect(rooms.asked[0]?.authorization).toBe(`Bearer ${TOKEN}`);
    const peers = await run('peers list hall');
    expect(peers.out).toMatch(
      /^b0b +Bob\\u001b\[2J\\u009b2J +connected +video \(muted\), audio +publish audio, subscribe$/m,
    );
    for (const line of ['rooms list --json', 'peers list hall --json']) expect((await run(line)).exit).toBe(0);
  });

  test('are listed up to a limit, and by a pattern', async () => {
    const { rooms, total } = JSON.parse((await run('rooms list --limit 1 --json')).out);
    expect([rooms.length, total]).toEqual([1, 2]);
    const found = JSON.parse((await run('rooms list --match ha* --json')).out);
    expect(found.rooms.map(({ id }: { id: string }) => id)).toEqual(['hall']);
  });

  test('are created with what the options say, in the units of the API', async () => {
    const line = 'rooms create hall --max-peers 4 --video-codec vp8 --empty-for 5m --away-for 30s --webhook https://h/';
    const { asked, out } = await run(line);
    expect(asked).toMatchObject([
      {
        line: 'POST /room',
        body: {
          roomId: 'hall',
          maxPeers: 4,
          videoCodec: 'vp8',
          webhookUrl: 'https://h/',
          peerlessPurgeTimeout: 300,
          peerDisconnectedTimeout: 30,
        },
      },
    ]);
    expect(out).toBe('hall\n');
    expect((await run('rooms create')).asked[0]?.body).toEqual({});
    const added = await run(['peers', 'add', 'hall', '--name', 'Bob B.', '--ttl', '1h', '--publish', 'audio,data']);
    expect(added.asked[0]?.body).toEqual({
      type: 'webrtc',
      options: { metadata: { name: 'Bob B.' }, ttl: 3_600, permissions: { publish: ['audio', 'data'] } },
    });
    expect(added.out).toMatch(/^token +t\.t$/m);
  });

  test('change only what is named', async () => {
    const shown = await run('peers permissions hall b0b');
    expect(shown.asked.map(({ line }) => line)).toEqual(['GET /room/hall']);
    expect(shown.out).toBe('publish    audio\nsubscribe  yes\nmetadata   no\n');
    const changed = await run('peers permissions hall b0b --publish none --metadata yes');
    expect(changed.asked).toMatchObject([{ body: { permissions: { publish: false, metadata: true } } }]);
  });

  test('are muted track by track, by kind, or as a whole', async () => {
    const lines = ({ asked }: Awaited<ReturnType<typeof run>>) => asked.map(({ line, body }) => [line, body]);
    const muted = { muted: true };
    expect(lines(await run('peers mute hall b0b v'))).toEqual([['PATCH /room/hall/peer/b0b/track/v', muted]]);
    expect(lines(await run('peers mute hall b0b'))).toEqual([
      ['GET /room/hall', undefined],
      ['PATCH /room/hall/peer/b0b/track/v', muted],
      ['PATCH /room/hall/peer/b0b/track/a', muted],
    ]);
    expect(lines(await run('peers mute hall b0b --kind audio --off'))[1]).toEqual([
      'PATCH /room/hall/peer/b0b/track/a',
      { muted: false },
    ]);
    expect((await run('peers mute hall nobody')).exit).toBe(65);
  });

  test('are invited with an address alone on stdout, to be copied', async () => {
    const invited = await run('invite hall --uses 3 --ttl 2h --name Guest --publish audio');
    expect(invited.asked).toMatchObject([
      { body: { uses: 3, ttl: 7_200, name: 'Guest', permissions: { publish: ['audio'] } } },
    ]);
    expect(invited.out).toBe('https://a/#invitation=i.i\n');
    expect(invited.err).toBe('valid until 2027-01-15 08:00 UTC.\n');
    const bare = await run('invite bare');
    expect([bare.out, bare.err]).toEqual(['i.i\n', expect.stringContaining('no page for guests')]);
    expect((await run('viewer hall --ttl 30d')).out).toBe('https://a/hls/hall/~v.v/index.m3u8\n');
    expect((await run('viewer hall --ttl 31d')).exit).toBe(64);
  });

  test('leave recordings, which are listed with state and progress, and removed', async () => {
    const { out } = await run('recordings list');
    expect(out).toMatch(/^hall +part_\S+ +uploading 42 % +– +2 +1 min +1\.2 MB$/m);
    expect(out).toMatch(/^attic +part_\S+ +failed: no bucket\\u001b\[2J\\u009b2J +– +2 /m);
    expect(out).toContain('b@host\\u001b[2J\\u009b2J does not answer: its recordings are missing');
    expect(JSON.parse((await run('recordings list hall --limit 7 --json')).out).recordings).toHaveLength(1);
    expect((await run(`recordings rm hall ${PART} --yes`)).asked).toMatchObject([
      { line: `DELETE /raw_recording/hall/${PART}` },
    ]);
    expect((await run(`recordings rm hall part_other --yes`)).exit).toBe(65);
  });

  test('leave recordings, of which one movie is made', async () => {
    const queued = await run(`recordings mix hall ${PART} --layout speaker --size 640x360`);
    expect(queued.asked).toMatchObject([{ body: { layout: 'speaker', width: 640, height: 360 } }]);
    expect(queued.out).toBe('queued: speaker of 640 x 360\n');
    const skipping = await run(`recordings mix cellar ${PART} --skip-missing`);
    expect(skipping.asked).toMatchObject([{ body: { skipMissing: true } }]);
    expect(skipping.out).toContain('\nwithout part_lost\\u001b[2J\\u009b2J, which cannot be found\n');
    const waited = await run(`recordings mix hall ${PART} --wait`);
    expect(waited.exit).toBe(0);
    expect(waited.out).toMatch(/^finished: speaker of 640 x 360, 1 min, 2\.0 MB\nhttp:.*\/mix\.mp4$/m);
    const lost = await run(`recordings mix attic ${PART} --wait`);
    expect([lost.exit, lost.out]).toEqual([1, expect.stringMatching(/^failed: no ffmpeg\\u001b\[2J/)]);
    for (const size of ['640', '641x360', '64x2162', '0x0', '-64x64'])
      expect(await run(`recordings mix hall ${PART} --size=${size}`)).toMatchObject({ exit: 64, asked: [] });
  });

  describe('leave recordings, whose mix', () => {
    const mix = `recordings mix hall ${PART} --wait`;
    const first = 'GET /raw_recording?scope=cluster&room=hall&limit=1000';
    const second = `${first}&after=hall%2Fpart_2027-01-01T00-00-00.000Z`;
    const newer = Array.from({ length: 1_000 }, () => ({ ...recording, part: 'part_2027-01-01T00-00-00.000Z' }));

    test('is awaited while its node misses a list', async () => {
      const lists = [{ data: [], unreachable: [`b@host${CLEAR}`] }, ANSWERS[first]];
      const { exit, asked } = await run(mix, {}, { [first]: () => lists.shift() });
      expect([exit, asked.filter(({ line }) => line === first).length]).toEqual([0, 2]);
    });

    test('is missing once every node has answered without it', async () => {
      const { exit, err } = await run(mix, {}, { [first]: { data: [recording], unreachable: [] } });
      expect([exit, err]).toEqual([65, `bloomctl: nobody mixes ${PART} any more\n`]);
    });

    test('is found behind a thousand newer ones', async () => {
      const { exit } = await run(mix, {}, { [first]: { data: newer }, [second]: ANSWERS[first] });
      expect(exit).toBe(0);
    });

    test('is no longer looked for when a server gives the same page again', async () => {
      const { exit, asked } = await run(mix, {}, { [first]: { data: newer }, [second]: { data: newer } });
      expect([exit, asked.length]).toEqual([65, 3]);
    });
  });

  test.each([
    ['check server', 0, /answers as 0\.9\.0, and accepts rooms$/],
    ['check room hall --people 1', 0, /^ok {2}1 of 1 person in hall$/],
    ['check room hall --people 2', 1, /^no {2}1 of 2 people in hall$/],
    ['check room none --people 1', 65, /^$/],
    ['check recordings hall', 0, /^ok {2}1 recording, and none has failed$/],
    ['check recordings cellar', 1, /^no {2}1 recording, and none has failed; b@host\\u\S+ did not answer$/],
    ['check recordings', 1, /^no {2}1 of 2 recordings failed, last part_\S+ of attic$/],
  ])('are checked for scripts: %s ends with %i', async (line, exit, words) => {
    const ran = await run(line);
    expect([ran.exit, ran.out.trim()]).toEqual([exit, expect.stringMatching(words)]);
  });

  test('are removed only after a confirmation', async () => {
    for (const line of ['rooms delete hall', 'peers kick hall b0b', `recordings rm hall ${PART}`]) {
      const refused = await run(line);
      expect([refused.exit, refused.asked]).toEqual([64, []]);
    }
    const kicked = await run(['peers', 'kick', 'hall', 'b0b', '--yes', '--reason', 'too loud']);
    expect(kicked).toMatchObject({
      exit: 0,
      asked: [{ line: 'DELETE /room/hall/peer/b0b', body: { reason: 'too loud' } }],
    });
    expect((await run('rooms delete hall --yes')).asked).toMatchObject([{ line: 'DELETE /room/hall' }]);
  });

  test('that do not exist end with 65', async () => {
    expect(await run('peers list none')).toMatchObject({ exit: 65, err: 'bloomctl: Room none does not exist\n' });
  });

  test.each([
    'rooms create hall --max-peers -1',
    'rooms create hall --empty-for 0s',
    'rooms create hall --video-codec divx',
    'peers add hall --publish audio,smell',
    'peers permissions hall b0b --subscribe maybe',
    `peers kick hall b0b --yes --reason ${'x'.repeat(101)}`,
    'peers list',
    'rooms list --dump file',
  ])('ask nothing if the command line is wrong: %s', async (line) => {
    expect(await run(line)).toMatchObject({ exit: 64, asked: [] });
  });
});

test.each([
  ['rooms', 'list', '--token', 'hunter2'],
  ['--token=hunter2', 'peers', 'list', 'hall'],
  ['nodes', '--token', 'hunter2'],
])('refuses a token on the command line, says where it belongs and does not repeat it: %j', async (...args) => {
  const { exit, out, err } = await run(args);
  expect([exit, out]).toEqual([64, '']);
  expect(err).toContain('--token-file <file>');
  expect(err).not.toContain('hunter2');
});
