import { describe, expect, test } from '@jest/globals';
import type { ComponentHost } from '@bloom/rooms';
import { recordingKind, type RecordingOptions } from './recording-kind.js';

describe('options of a recording', () => {
  const s3 = { accessKeyId: 'id', secretAccessKey: 'key', region: 'eu', bucket: 'b' };
  const prepare = (env: { s3?: typeof s3; pathPrefix?: string }, options: Record<string, unknown>) =>
    recordingKind({
      s3: env.s3 ?? null,
      pathPrefix: env.pathPrefix ?? null,
      endpoint: null,
      record: () => ({ close: async () => undefined }),
    }).prepare(options, { roomId: 'kitchen', videoCodec: 'h264' });

  test('requires credentials from exactly one side', async () => {
    await expect(prepare({}, {})).rejects.toMatchObject({
      code: 'INVALID_OPTIONS',
      message: 'S3 credentials has to be passed either by request or at application startup as envs',
    });
    await expect(prepare({ s3 }, { credentials: s3 })).rejects.toMatchObject({
      message:
        'Conflicting S3 credentials supplied via environment variables and the REST API. Overrides on existing values are disallowed',
    });
    await expect(prepare({ s3, pathPrefix: 'a' }, { pathPrefix: 'a' })).rejects.toMatchObject({
      message:
        'Conflicting S3 path prefix supplied via environment variables and the REST API. Overrides on existing values are disallowed',
    });
    for (const options of [
      { credentials: 'x' },
      { credentials: { ...s3, bucket: 7 } },
      { pathPrefix: 7 },
      { pathPrefix: 'a/../b' },
      { subscribeMode: 'some' },
    ]) {
      const environment = 'credentials' in options ? {} : { s3 };
      await expect(prepare(environment, options)).rejects.toMatchObject({
        code: 'INVALID_OPTIONS',
        message: 'Invalid request body structure',
      });
    }
    expect(await prepare({ s3 }, {})).toMatchObject({ properties: { subscribeMode: 'auto' }, subscribeMode: 'auto' });
    const taken = await prepare({}, { credentials: s3, pathPrefix: null, subscribeMode: 'manual' });
    expect(taken.properties).toEqual({ subscribeMode: 'manual' });
  });

  test('shows that only sound is recorded, and nothing else that is new', async () => {
    expect((await prepare({ s3 }, { audioOnly: true })).properties).toEqual({ subscribeMode: 'auto', audioOnly: true });
    expect((await prepare({ s3 }, { audioOnly: false })).properties).toEqual({ subscribeMode: 'auto' });
    await expect(prepare({ s3 }, { audioOnly: 'yes' })).rejects.toMatchObject({ code: 'INVALID_OPTIONS' });
  });

  test('suits any room only if it is asked to take any codec, and shows that', async () => {
    expect((await prepare({ s3 }, { anyCodec: true })).properties).toEqual({ subscribeMode: 'auto', anyCodec: true });
    for (const anyCodec of [false, null]) {
      expect((await prepare({ s3 }, { anyCodec })).properties).toEqual({ subscribeMode: 'auto' });
    }
    await expect(prepare({ s3 }, { anyCodec: 'yes' })).rejects.toMatchObject({ code: 'INVALID_OPTIONS' });
    const record = () => ({ close: async () => undefined });
    const { videoCodecs } = recordingKind({ s3, pathPrefix: null, endpoint: null, record });
    expect(videoCodecs?.({ anyCodec: true })).toEqual(['h264', 'vp8']);
    for (const anyCodec of [undefined, null, false, 'yes']) expect(videoCodecs?.({ anyCodec })).toEqual(['h264']);
  });

  test('takes credentials with an endpoint whatever the environment has', async () => {
    const to: RecordingOptions[] = [];
    const credentials = { ...s3, bucket: 'theirs', endpoint: 'https://store.example/base' };
    const kind = recordingKind({
      s3,
      pathPrefix: null,
      endpoint: 'http://own.example',
      record: (_host, options) => {
        to.push(options);
        return { close: async () => undefined };
      },
    });
    for (const options of [{ credentials }, {}]) {
      (await kind.prepare(options, { roomId: 'kitchen', videoCodec: 'h264' })).start({} as ComponentHost);
    }
    expect(to).toEqual([
      { target: credentials, prefix: '', byRequest: true, audioOnly: false, anyCodec: false, notify: false },
      {
        target: { ...s3, endpoint: 'http://own.example' },
        prefix: '',
        byRequest: false,
        audioOnly: false,
        anyCodec: false,
        notify: false,
      },
    ]);
  });

  test.each([
    '',
    'store',
    'ftp://a.example',
    'file:///etc',
    'http://me:secret@a.example',
    'http://a.example/?key=secret',
  ])('refuses the endpoint %j without repeating it', async (endpoint) => {
    await expect(prepare({}, { credentials: { ...s3, endpoint } })).rejects.toMatchObject({
      code: 'INVALID_OPTIONS',
      message: 'Expected credentials.endpoint to be an http or https URL without user, query and fragment',
    });
  });
});
