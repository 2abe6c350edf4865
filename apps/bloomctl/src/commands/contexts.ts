import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { EXIT, Failure } from '../exit.js';
import { serverUrl } from '../outside/server.js';
import { type Contexts, mustBeName, readContexts, type ServerContext, writeContexts } from '../people/contexts.js';
import { table } from '../text/table.js';
import { type Commands, groupOf } from './define.js';

/** Names for servers of the HTTP API. */
export function contextCommands(commands: Commands): void {
  const { run } = commands;
  const contexts = groupOf(commands, 'context', 'names for servers, and where their tokens come from');

  contexts
    .command('add')
    .argument('<name>')
    .argument('<url>', 'https://media.example.com: the address of the HTTP API')
    .description('add or replace a context; its token comes from --token-file, a command, or BLOOM_TOKEN')
    .option('--token-command <command>', 'shell command that prints the token, such as one of a keyring')
    .option('--use', 'use it from now on; the first one is used anyway')
    .action(
      run<{ tokenCommand?: string; use?: boolean }>(async (context, [name = '', text = ''], { tokenCommand, use }) => {
        const { machine, options, output } = context;
        mustBeName(name);
        const url = serverUrl(text);
        if (tokenCommand === '') throw new Failure(EXIT.usage, 'the token command is empty');
        if (tokenCommand !== undefined && options.tokenFile !== undefined) {
          throw new Failure(EXIT.usage, '--token-file and --token-command both name a token; use one of them');
        }
        const known = await readContexts(machine);
        const added: ServerContext = {
          url: url.href,
          ...(options.tokenFile === undefined ? {} : { tokenFile: resolve(machine.cwd, options.tokenFile) }),
          ...(tokenCommand === undefined ? {} : { tokenCommand }),
        };
        const current = use === true ? name : (known.current ?? name);
        await writeContexts({ current, byName: new Map([...known.byName, [name, added]]) }, machine);
        if (isReadable(url)) output.say(`the token will travel unencrypted to ${url.host}; prefer https`);
        output.answer('context', { change: 'added', ...shown(name, added, current) }, () => [
          `${name} is ${url.href}${current === name ? ', used from now on' : ''}.`,
        ]);
      }),
    );

  contexts
    .command('list')
    .description('all contexts; * is the one in use')
    .action(
      run(async ({ machine, output }) => {
        const { current, byName } = await readContexts(machine);
        const list = [...byName].map(([name, each]) => shown(name, each, current));
        output.answer('contexts', { contexts: list }, (screen) =>
          list.length === 0
            ? ['no contexts.']
            : table(
                [
                  { title: '' },
                  { title: 'NAME' },
                  { title: 'ADDRESS', shrinksTo: 20 },
                  { title: 'TOKEN FROM', shrinksTo: 11 },
                ],
                list.map((each) => [
                  each.isCurrent ? '*' : '',
                  each.name,
                  each.url,
                  each.tokenFile ?? WORDS[each.tokenFrom],
                ]),
                screen,
              ),
        );
      }),
    );

  contexts
    .command('use')
    .argument('<name>')
    .description('use a context from now on')
    .action(
      run(async ({ machine, output }, [name = '']) => {
        const { byName } = await readContexts(machine);
        const used = known(byName, name);
        await writeContexts({ current: name, byName }, machine);
        output.answer('context', { change: 'used', ...shown(name, used, name) }, () => [`${name} is ${used.url}.`]);
      }),
    );

  contexts
    .command('rm')
    .argument('<name>')
    .description('forget a context; its token stays where it is')
    .action(
      run(async ({ machine, output }, [name = '']) => {
        const { current, byName } = await readContexts(machine);
        const removed = known(byName, name);
        const left = new Map([...byName].filter(([each]) => each !== name));
        await writeContexts({ current: current === name ? undefined : current, byName: left }, machine);
        output.answer('context', { change: 'removed', ...shown(name, removed, undefined) }, () => [
          `${name} was forgotten${current === name ? '; no context is in use now' : ''}.`,
        ]);
      }),
    );
}

const WORDS = { file: 'a file', command: 'a command', environment: 'BLOOM_TOKEN' } as const;

/** Returns a context as a document. The command is left out: it may contain the token. */
function shown(name: string, { url, tokenFile, tokenCommand }: ServerContext, current: string | undefined) {
  const tokenFrom = tokenFile !== undefined ? 'file' : tokenCommand !== undefined ? 'command' : 'environment';

  return { name, url, isCurrent: name === current, tokenFrom, tokenFile: tokenFile ?? null } as const;
}

/** @throws Failure */
function known(byName: Contexts['byName'], name: string): ServerContext {
  const found = byName.get(name);
  if (found !== undefined) return found;
  const names = [...byName.keys()];
  throw new Failure(
    EXIT.configuration,
    `there is no context called ${JSON.stringify(name)}`,
    names.length === 0 ? {} : { advice: `there are: ${names.join(', ')}` },
  );
}

/** True where others on the way can read what is sent. */
function isReadable({ protocol, hostname }: URL): boolean {
  const isLoopback =
    hostname === 'localhost' || hostname === '[::1]' || (isIP(hostname) === 4 && hostname.startsWith('127.'));

  return protocol === 'http:' && !isLoopback;
}
