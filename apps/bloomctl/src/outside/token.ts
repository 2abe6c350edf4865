import { readFile, stat } from 'node:fs/promises';
import { EXIT, Failure } from '../exit.js';
import type { Machine } from '../machine.js';

/** Longer than any token, and than a link with one. */
const MAX_TOKEN_BYTES = 8_192;

/** `api` opens everything; a peer's token one peer of a room, an invitation the peers of guests. */
export type TokenKind = 'api' | 'peer' | 'invitation';

export interface Token {
  readonly value: string;
  readonly kind: TokenKind;
  /** The room that it opens; undefined for the API token. */
  readonly roomId?: string;
  /** Description of its origin, never the token itself. */
  readonly source: string;
}

/**
 * Returns the token of `--token-file`, or of BLOOM_TOKEN or JF_SERVER_API_TOKEN. There is no option for the token
 * itself: every user of the machine could read it. `wanted` names the kinds that the caller takes.
 * @throws Failure
 */
export async function findToken(
  file: string | undefined,
  { env }: Pick<Machine, 'env'>,
  wanted = 'the API token of the server',
): Promise<Token> {
  if (file !== undefined) return tokenOf(await fromFile(file), file);
  for (const name of ['BLOOM_TOKEN', 'JF_SERVER_API_TOKEN', 'FJ_SERVER_API_TOKEN']) {
    const value = env[name];
    if (value !== undefined && value.trim() !== '') return tokenOf(value, `the environment (${name})`);
  }
  throw new Failure(EXIT.configuration, `this needs ${wanted}`, {
    advice: 'set BLOOM_TOKEN, or name a file with --token-file',
  });
}

/** Distinguishes the kinds of tokens. An invitation may be the whole link for guests. */
export function tokenOf(text: string, source: string): Token {
  const trimmed = text.trim();
  const value = /[#&]invitation=([^&\s]+)$/.exec(trimmed)?.[1] ?? trimmed;
  if (value === '') throw new Failure(EXIT.configuration, `the token from ${source} is empty`);
  // A header cannot carry anything else.
  if (!/^[\u0021-\u007e]+$/.test(value)) {
    throw new Failure(EXIT.configuration, `the token from ${source} contains characters that no token has`);
  }

  return { value, source, ...claimOf(value) };
}

/** Reads the claim of a token, `<claim>.<signature>`, as its bearer may. Anything else is an API token. */
function claimOf(value: string): Pick<Token, 'kind' | 'roomId'> {
  const [payload = '', signature, ...rest] = value.split('.');
  if (signature === undefined || rest.length > 0) return { kind: 'api' };
  try {
    const claim: unknown = JSON.parse(Buffer.from(payload, 'base64url').toString());
    if (Array.isArray(claim)) return { kind: 'peer', roomId: String(claim[0]) };
    if (typeof claim !== 'object' || claim === null || !('roomId' in claim)) return { kind: 'api' };
    return { kind: 'invitation', roomId: String(claim.roomId) };
  } catch {
    return { kind: 'api' };
  }
}

async function fromFile(path: string): Promise<string> {
  try {
    const { mode, size } = await stat(path);
    if ((mode & 0o007) !== 0) {
      throw new Failure(EXIT.configuration, `every user of this machine can read or change the token file ${path}`, {
        advice: `chmod 600 ${path}`,
      });
    }
    if (size > MAX_TOKEN_BYTES) throw new Failure(EXIT.configuration, `the token file ${path} is too long for a token`);
    return await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw new Failure(EXIT.configuration, `the token file ${path} cannot be read: ${(error as Error).message}`);
  }
}
