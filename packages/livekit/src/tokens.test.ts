import { describe, expect, test } from '@jest/globals';
import { SignJWT } from 'jose';
import { AccessToken, TokenVerifier } from 'livekit-server-sdk';
import { grantsOf, publishKinds } from './grants.js';
import { Tokens } from './tokens.js';

const KEY = 'APIone';
const SECRET = 'a-secret-of-more-than-thirty-two-characters';

const now = Math.floor(Date.now() / 1_000);
const clock = { wall: () => now * 1_000 };
const tokens = new Tokens([{ key: KEY, secret: SECRET }], clock);

/** Returns a token with these claims, signed like a valid one unless said otherwise. */
function signed(claims: Record<string, unknown>, { secret = SECRET, alg = 'HS256' } = {}): Promise<string> {
  return new SignJWT({ iss: KEY, sub: 'ann', exp: now + 600, video: { roomJoin: true, room: 'r' }, ...claims })
    .setProtectedHeader({ alg })
    .sign(new TextEncoder().encode(secret));
}

function unsigned(claims: Record<string, unknown>): string {
  const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

  return `${encode({ alg: 'none', typ: 'JWT' })}.${encode({ iss: KEY, exp: now + 600, ...claims })}.`;
}

const refusal = async (token: string): Promise<string> =>
  tokens.verify(token).then(
    () => 'accepted',
    (error: unknown) => (error as Error).message,
  );

describe('access tokens', () => {
  test("accepts the token of LiveKit's server SDK", async () => {
    const token = new AccessToken(KEY, SECRET, { identity: 'ann', name: 'Ann', attributes: { a: '1' }, ttl: 600 });
    token.addGrant({ roomJoin: true, room: 'kitchen', canPublish: false });
    expect(await tokens.verify(await token.toJwt())).toMatchObject({
      sub: 'ann',
      name: 'Ann',
      attributes: { a: '1' },
      video: { roomJoin: true, room: 'kitchen', canPublish: false },
    });
  });

  test("signs tokens that LiveKit's server SDK accepts", async () => {
    const token = await tokens.sign(KEY, { sub: 'ann', video: { roomJoin: true, room: 'kitchen' } }, 600);
    expect(await new TokenVerifier(KEY, SECRET).verify(token)).toMatchObject({
      sub: 'ann',
      video: { room: 'kitchen' },
    });
  });

  test('tolerates clocks that differ by less than a minute', async () => {
    expect(await refusal(await signed({ exp: now - 50, nbf: now + 50 }))).toBe('accepted');
  });

  test.each([
    ['an expired token', () => signed({ exp: now - 70 }), 'the token has expired'],
    ['a token for later', () => signed({ nbf: now + 70 }), 'the claim nbf is missing or not valid now'],
    ['a token without an end', () => signed({ exp: undefined }), 'the claim exp is missing or not valid now'],
    ['the key of somebody else', () => signed({ iss: 'APItwo' }), 'unknown API key'],
    ['a key that is no text', () => signed({ iss: 5 as never }), 'unknown API key'],
    ['another secret', () => signed({}, { secret: 'x'.repeat(40) }), 'the signature does not match'],
    [
      'another algorithm',
      () => signed({}, { alg: 'HS512', secret: 'y'.repeat(64) }),
      'the token is not signed with HS256',
    ],
    ['no signature', async () => unsigned({ sub: 'ann' }), 'the token is not signed with HS256'],
    ['a claim of the wrong type', () => signed({ video: { room: 5 } }), 'the claim video.room is of the wrong type'],
    [
      'attributes of the wrong type',
      () => signed({ attributes: { a: 1 } }),
      'the claim attributes.a is of the wrong type',
    ],
    ['an identity of the wrong type', () => signed({ sub: ['ann'] as never }), 'the claim sub is of the wrong type'],
    ['garbage', async () => 'a.b.c', 'not a JWT'],
    ['nothing', async () => '', 'not a JWT'],
  ])('refuses %s, and says why', async (_what, token, reason) => {
    expect(await refusal(await token())).toBe(`invalid token: ${reason}`);
  });

  test('never repeats the token in a refusal', async () => {
    const token = unsigned({ sub: 'a-name-to-look-for' });
    expect(await refusal(token)).not.toContain(token.slice(0, 20));
  });

  test('signs no token that is too long to be accepted, but leaves out what others see', async () => {
    const long = { sub: 'ann', name: 'Ann', metadata: 'x'.repeat(20_000), attributes: {}, video: { room: 'r' } };
    const token = await tokens.sign(KEY, long, 600);
    expect(await tokens.verify(token)).toEqual(expect.not.objectContaining({ metadata: expect.anything() }));
    expect(await tokens.verify(token)).toMatchObject({ sub: 'ann', name: 'Ann', video: { room: 'r' } });
  });

  test('refuses a token of more than 16 KiB before it reads it', async () => {
    expect(await refusal('x'.repeat(16 * 1024 + 1))).toBe('the token exceeds 16384 bytes');
  });
});

describe('grants', () => {
  test('permits publishing, subscribing and data, and no change of metadata, for an absent claim', () => {
    expect(grantsOf({ iss: KEY, exp: now, video: {} })).toEqual({
      canPublish: true,
      canSubscribe: true,
      canPublishData: true,
      canPublishSources: [],
      canUpdateOwnMetadata: false,
      hidden: false,
    });
  });

  test('lets data follow publishing unless it is named', () => {
    expect(grantsOf({ iss: KEY, exp: now, video: { canPublish: false } }).canPublishData).toBe(false);
  });

  test('derives from the sources the kinds that may be published', () => {
    const grants = grantsOf({ iss: KEY, exp: now, video: { canPublishSources: ['microphone', 'unheard_of'] } });
    expect(publishKinds(grants)).toEqual(['audio', 'data']);
  });

  test('permits no tracks for sources that are all unknown', () => {
    const grants = grantsOf({ iss: KEY, exp: now, video: { canPublishSources: ['unheard_of'] } });
    expect(publishKinds(grants)).toEqual(['data']);
  });
});
