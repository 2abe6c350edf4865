// Which server a command asks, and with which token. A token belongs to its server: that of a context is never sent to
// an address from elsewhere.
import { EXIT, Failure } from '../exit.js';
import { serverUrl } from '../outside/server.js';
import { findToken, type Token, tokenOf } from '../outside/token.js';
import type { Machine } from '../machine.js';
import { readContexts, type ServerContext } from './contexts.js';

export interface TargetOptions {
  readonly url?: string | undefined;
  readonly context?: string | undefined;
  readonly tokenFile?: string | undefined;
}

export interface Target {
  readonly url: URL;
  readonly token: Token;
  /** True if nobody named a server. */
  readonly isGuess?: boolean;
}

/** Advice when no server was named. */
export const NAME_A_SERVER = 'name one: --url <url>, BLOOM_URL, or bloomctl context add <name> <url>';
/** Token of a node in the development profile. It is public, so not a secret. */
const DEVELOPMENT_TOKEN = 'development';
/** Port of a node in the development profile. */
const DEVELOPMENT_PORT = '5002';
/** Tokens are asked for at most this long: a keyring may ask its user first. */
const COMMAND_MS = 60_000;
const MAX_COMMAND_OUTPUT_BYTES = 8_192;

/**
 * Returns the first of these: `--url`, `--context`, BLOOM_URL, BLOOM_CONTEXT, the context in use, a node on this
 * machine.
 * @throws Failure
 */
export async function findTarget(options: TargetOptions, machine: Machine): Promise<Target> {
  const { url, context: name } = options;
  if (url !== undefined && name !== undefined) {
    throw new Failure(EXIT.usage, '--url and --context both name a server; use one of them');
  }
  if (url !== undefined) return await at(serverUrl(url), options, machine);
  if (name !== undefined) return await ofContext(name, options, machine);
  const { BLOOM_URL, BLOOM_CONTEXT } = machine.env;
  if (isSet(BLOOM_URL)) return await at(serverUrl(BLOOM_URL), options, machine);
  if (isSet(BLOOM_CONTEXT)) return await ofContext(BLOOM_CONTEXT, options, machine);
  const { current } = await readContexts(machine);
  if (current !== undefined) return await ofContext(current, options, machine);

  return await besideNode(options, machine);
}

/**
 * A node on this machine, such as in its container, or one of `npm start`. Any user of the machine may listen there, so
 * it is sent a token of its own environment, and never one for a server that nobody named.
 */
async function besideNode({ tokenFile }: TargetOptions, { env }: Machine): Promise<Target> {
  if (tokenFile !== undefined) {
    throw new Failure(EXIT.usage, '--token-file is the token of a server, and no server was named', {
      advice: NAME_A_SERVER,
    });
  }
  const { JF_PORT, FJ_PORT, JF_SERVER_API_TOKEN, FJ_SERVER_API_TOKEN } = env;
  const port = isSet(JF_PORT) ? JF_PORT : isSet(FJ_PORT) ? FJ_PORT : DEVELOPMENT_PORT;
  if (!/^\d{1,5}$/.test(port) || Number(port) < 1 || Number(port) > 65_535) {
    throw new Failure(EXIT.configuration, `JF_PORT is not a port: ${port}`);
  }
  const url = serverUrl(`http://127.0.0.1:${port}`);
  if (isSet(JF_SERVER_API_TOKEN) || isSet(FJ_SERVER_API_TOKEN)) {
    const own = { env: { JF_SERVER_API_TOKEN, FJ_SERVER_API_TOKEN } };

    return { url, isGuess: true, token: mustBeApi(await findToken(undefined, own)) };
  }

  return {
    url,
    isGuess: true,
    token: tokenOf(DEVELOPMENT_TOKEN, 'nowhere, so it is the public one of a node in development'),
  };
}

async function at(url: URL, { tokenFile }: TargetOptions, machine: Machine): Promise<Target> {
  return { url, token: mustBeApi(await findToken(tokenFile, machine)) };
}

async function ofContext(name: string, options: TargetOptions, machine: Machine): Promise<Target> {
  const { byName } = await readContexts(machine);
  const context = byName.get(name);
  if (context === undefined) {
    const known = [...byName.keys()];
    throw new Failure(EXIT.configuration, `there is no context called ${JSON.stringify(name)}`, {
      advice:
        known.length === 0
          ? `bloomctl context add ${name} https://media.example.com --token-file <file>`
          : `there are: ${known.join(', ')}`,
    });
  }
  const url = serverUrl(context.url);

  return { url, token: mustBeApi(await tokenOfContext(name, context, { options, machine })) };
}

interface Given {
  readonly options: TargetOptions;
  readonly machine: Machine;
}

async function tokenOfContext(name: string, context: ServerContext, { options, machine }: Given): Promise<Token> {
  if (options.tokenFile !== undefined) return await findToken(options.tokenFile, machine);
  if (context.tokenFile !== undefined) return await findToken(context.tokenFile, machine);
  if (context.tokenCommand === undefined) return await findToken(undefined, machine);
  const source = `the command of context ${name}`;

  return tokenOf(await outputOf(context.tokenCommand, source), source);
}

/** Runs a command of the user's own, as their shell would. It may ask on the terminal. @throws Failure */
async function outputOf(command: string, source: string): Promise<string> {
  const { spawnSync } = await import('node:child_process');
  const { status, stdout, signal, error } = spawnSync('/bin/sh', ['-c', command], {
    stdio: ['inherit', 'pipe', 'inherit'],
    encoding: 'utf8',
    timeout: COMMAND_MS,
    maxBuffer: MAX_COMMAND_OUTPUT_BYTES,
  });
  // Neither the command nor its output is shown: both may contain the token.
  if (error !== undefined) {
    const code = (error as NodeJS.ErrnoException).code ?? '';
    const why =
      code === 'ENOBUFS'
        ? `prints more than ${MAX_COMMAND_OUTPUT_BYTES} bytes`
        : code === 'ETIMEDOUT'
          ? 'does not end within 1 min'
          : `cannot be run: ${code}`;
    throw new Failure(EXIT.configuration, `${source} for its token ${why}`);
  }
  if (status !== 0) {
    throw new Failure(EXIT.configuration, `${source} for its token ended with ${status ?? signal}`, {
      advice: 'run it in a shell to see why; it has to print the token and nothing else',
    });
  }

  return stdout;
}

/** @throws Failure for the token of a peer or a guest */
function mustBeApi(token: Token): Token {
  if (token.kind === 'api') return token;
  throw new Failure(EXIT.rights, 'this takes the API token of the server (JF_SERVER_API_TOKEN)', {
    advice: `the token from ${token.source} is that of ${token.kind === 'peer' ? 'a peer' : 'an invitation'}`,
  });
}

function isSet(value: string | undefined): value is string {
  return value !== undefined && value !== '';
}
