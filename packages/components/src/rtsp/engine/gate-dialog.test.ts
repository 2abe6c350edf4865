import { beforeEach, describe, expect, test } from '@jest/globals';
import { parseSourceUri } from '../source-uri.js';
import { GateDialog } from './gate-dialog.js';
import { fieldOf, type RtspMessage } from './rtsp-splitter.js';

const ALIAS = 'rtsp://127.0.0.1:9/secret';
const body = Buffer.alloc(0);

let dialog: GateDialog;
let toCamera: RtspMessage[];
let toClient: RtspMessage[];
let moves: string[];
let agreed: [number, number | undefined][];

function open(uri: string): void {
  [toCamera, toClient, moves, agreed] = [[], [], [], []];
  dialog = new GateDialog(parseSourceUri(uri)!, ALIAS, {
    toCamera: (message) => toCamera.push(message),
    toClient: (message) => toClient.push(message),
    moveTo: ({ shown }) => moves.push(shown),
    openPorts: () => Promise.resolve(20_000),
    agree: (port, serverPort) => agreed.push([port, serverPort]),
  });
}
beforeEach(() => open('rtsp://admin:p%40ss@cam:554/s?a=b&udp'));

async function ask(method: string, path = '', fields: RtspMessage['fields'] = []): Promise<RtspMessage> {
  await dialog.fromClient({ start: `${method} ${ALIAS}${path} RTSP/1.0`, fields: [['cseq', '7'], ...fields], body });

  return toCamera.at(-1)!;
}

/** Answers the last request as the camera. */
function answer(status: string, fields: RtspMessage['fields'] = []): RtspMessage | undefined {
  const sequence = fieldOf(
    { fields: toCamera.at(-1)!.fields.map(([name, value]) => [name.toLowerCase(), value]) },
    'cseq',
  )!;
  dialog.fromCamera({ start: `RTSP/1.0 ${status}`, fields: [['cseq', sequence], ...fields], body });

  return toClient.at(-1);
}

const login = ({ fields }: RtspMessage): string | undefined => fields.find(([name]) => name === 'Authorization')?.[1];
const basic: RtspMessage['fields'] = [['www-authenticate', 'Basic realm="x"']];

describe('a request to a camera', () => {
  test('names the camera as configured, without the transport', async () => {
    expect((await ask('DESCRIBE')).start).toBe('DESCRIBE rtsp://cam:554/s?a=b RTSP/1.0');
    expect((await ask('SETUP', '/track1')).start).toBe('SETUP rtsp://cam:554/s?a=b/track1 RTSP/1.0');
  });

  test('carries the login only after the camera has asked for it', async () => {
    expect(login(await ask('DESCRIBE'))).toBeUndefined();
    answer('401 Unauthorized', basic);
    expect(login(toCamera.at(-1)!)).toBe(`Basic ${Buffer.from('admin:p@ss').toString('base64')}`);
    expect(toClient).toEqual([]);
    expect(answer('401 Unauthorized', basic)?.start).toBe('RTSP/1.0 401 Unauthorized');
  });

  test('is answered with digest when the camera offers both', async () => {
    await ask('DESCRIBE');
    answer('401 Unauthorized', [...basic, ['www-authenticate', 'Digest realm="x", nonce="n"']]);
    expect(login(toCamera.at(-1)!)).toMatch(
      /^Digest username="admin", realm="x", nonce="n", uri="rtsp:\/\/cam:554\/s\?a=b"/,
    );
  });
});

describe('leaving', () => {
  const setUp = async (): Promise<void> => {
    await ask('SETUP', '/track1', [['transport', 'RTP/AVP/TCP;unicast;interleaved=0-1']]);
    answer('200 OK', [
      ['transport', 'RTP/AVP/TCP;unicast;interleaved=0-1'],
      ['session', '12;timeout=60'],
    ]);
  };

  test('ends the session that the native library has left open', async () => {
    await setUp();
    dialog.leave();
    expect(toCamera.at(-1)!.start).toBe('TEARDOWN rtsp://cam:554/s?a=b RTSP/1.0');
    expect(toCamera.at(-1)!.fields).toContainEqual(['Session', '12']);
  });

  test('ends a session once', async () => {
    await setUp();
    dialog.leave();
    const sent = toCamera.length;
    dialog.leave();
    expect(toCamera).toHaveLength(sent);
  });

  test('sends nothing after the goodbye of the native library', async () => {
    await setUp();
    await ask('TEARDOWN', '', [['session', '12']]);
    const sent = toCamera.length;
    dialog.leave();
    expect(toCamera).toHaveLength(sent);
  });

  test('sends nothing to a camera without a session', async () => {
    await ask('DESCRIBE');
    const sent = toCamera.length;
    dialog.leave();
    expect(toCamera).toHaveLength(sent);
  });
});

describe('a redirect', () => {
  const redirected = async (location: string): Promise<RtspMessage> => {
    await ask('DESCRIBE');
    answer('401 Unauthorized', basic);
    answer('302 Moved', [['location', location]]);
    answer('401 Unauthorized', basic);

    return toCamera.at(-1)!;
  };

  test.each(['rtsp://other:554/s', 'rtsp://cam:8554/s', 'rtsp://admin:p%40ss@other:554/s'])(
    'carries no login to another address, %s',
    async (location) => {
      expect(login(await redirected(location))).toBeUndefined();
      expect(moves).toHaveLength(1);
      expect(toClient.at(-1)?.start).toBe('RTSP/1.0 401 Unauthorized');
    },
  );

  test('carries the login within the same address', async () => {
    const request = await redirected('rtsp://CAM/other');
    expect(request.start).toBe('DESCRIBE rtsp://CAM/other RTSP/1.0');
    expect(login(request)).toContain('Basic ');
  });

  test('leads only to cameras, and at most four times', async () => {
    await ask('DESCRIBE');
    for (const location of ['file:///etc/passwd', 'http://cam/', 'rtsps://cam/', '', 'rtsp://a b/']) {
      expect(() => answer('302 Moved', [['location', location]])).toThrow('redirects');
      await ask('DESCRIBE');
    }
    open('rtsp://cam/');
    await ask('DESCRIBE');
    for (let i = 0; i < 4; i++) answer('302 Moved', [['location', `rtsp://cam${i}/`]]);
    expect(() => answer('302 Moved', [['location', 'rtsp://cam5/']])).toThrow('redirects');
  });
});

describe('the transport of a stream', () => {
  test("uses the gate's ports on both sides over UDP, and no other host", async () => {
    const request = await ask('SETUP', '/0', [['transport', 'RTP/AVP/UDP;unicast;client_port=5000-5001']]);
    expect(request.fields).toContainEqual(['Transport', 'RTP/AVP/UDP;unicast;client_port=20000-20001']);
    const others = 'source=198.51.100.7;destination=198.51.100.8';
    const response = answer('200 OK', [['transport', `RTP/AVP;unicast;${others};server_port=6970-6971`]]);
    expect(response?.fields).toContainEqual([
      'Transport',
      'RTP/AVP;unicast;client_port=5000-5001;server_port=20000-20001',
    ]);
    expect(agreed).toEqual([[20_000, 6_970]]);
  });

  test('names nothing but its channels over TCP', async () => {
    await ask('SETUP', '/0', [['transport', 'RTP/AVP/TCP;unicast;interleaved=0-1']]);
    const response = answer('200 OK', [
      ['transport', 'RTP/AVP/TCP;unicast;source=198.51.100.7;interleaved=2-3;ssrc=1'],
    ]);
    expect(response?.fields).toContainEqual(['Transport', 'RTP/AVP/TCP;unicast;interleaved=2-3']);
  });
});

test('answers requests from a camera, which never reach the native library', () => {
  for (const method of ['OPTIONS', 'REDIRECT', 'ANNOUNCE']) {
    dialog.fromCamera({ start: `${method} rtsp://x/ RTSP/1.0`, fields: [['cseq', '1']], body });
  }
  expect(toCamera.map(({ start }) => start)).toEqual([
    'RTSP/1.0 200 OK',
    'RTSP/1.0 501 Not Implemented',
    'RTSP/1.0 501 Not Implemented',
  ]);
  expect(toClient).toEqual([]);
});

test('rejects a server that does not speak RTSP', () => {
  expect(() => dialog.fromCamera({ start: 'HTTP/1.1 200 OK', fields: [], body })).toThrow('does not speak RTSP');
});
