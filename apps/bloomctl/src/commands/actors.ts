import { paint } from '../text/style.js';
import { span } from '../text/units.js';
import { whole } from '../values.js';
import { actorView, stateView } from '../views/actor.js';
import { actorsView, actorTree, mailboxView } from '../views/actors.js';
import { pathView, summaryView, traceView } from '../views/trace.js';
import { type Commands, oneOf, shared, timeOption } from './define.js';
import { showSeveral } from './several.js';
import { printStream } from '../streams.js';

const SORTS = ['path', 'queue', 'in', 'out', 'busy', 'p99', 'restarts', 'failed', 'age'] as const;
type Sort = (typeof SORTS)[number];
interface Cut {
  on?: string;
  depth: number;
  bytes: number;
}

const ID = 'path of an actor (rooms/kitchen), or a registered name';

export function actorCommands({ program, run }: Commands): void {
  shared
    .all(shared.limit(shared.on(program.command('actors'))))
    .description('the actors of a node, as a list or a tree')
    .option('--tree', 'parents with their children')
    .option('--match <pattern>', '* is any text: rooms/kitchen*')
    .option('--sort <figure>', `one of: ${SORTS.join(', ')}`, oneOf(...SORTS))
    .addOption(timeOption('--sample <time>', 'time between two samples, for the rates; 0ms: one sample', '500ms'))
    .action(
      run<{ tree?: boolean; match?: string; sort?: Sort; sample: number; limit: number; all?: boolean; on?: string }>(
        async (context, _, { tree = false, match = null, sort = tree ? 'path' : 'queue', sample, limit, all, on }) => {
          const nodes = await context.targets(on === undefined ? [] : [on], all === true);
          await showSeveral(context, {
            kind: 'actors',
            fields: { match, sort, limit, sampleMs: Math.min(sample, 5_000) },
            nodes,
            options: { timeoutMs: context.options.timeout + sample },
            view: (found, screen) =>
              tree
                ? found.flatMap((answer) => [
                    ...(found.length > 1 ? [paint(screen, 'bold', answer.node)] : []),
                    ...actorTree(answer, screen),
                  ])
                : actorsView(found, screen),
          });
        },
      ),
    );

  shared
    .on(program.command('actor'))
    .argument('<id>', ID)
    .description('one actor: what it does, its mailbox, timers, watchers, last error')
    .action(
      run<{ on?: string }>(async (context, [id = ''], { on }) => {
        const { asked, node, answer } = await context.ask('actor', { id }, await context.on(on));
        // `kind` is the kind of the document.
        const { kind: behaviour, ...rest } = answer;
        context.output.answer('actor', { asked, node, behaviour, ...rest }, (screen) =>
          actorView({ ...answer, node }, context.now, screen),
        );
      }),
    );

  shared
    .cut(shared.on(program.command('state')))
    .argument('<id>', ID)
    .description('the state of an actor, without secrets')
    .option('--path <path>', 'only this part: peers.*.tracks')
    .action(
      run<Cut & { path?: string }>(async (context, [id = ''], { on, path = null, depth, bytes }) => {
        const fields = { id, path, depth, bytes };
        const { asked, node, answer } = await context.ask('state', fields, await context.on(on));
        const { kind: behaviour, ...rest } = answer;
        context.output.answer('state', { asked, node, behaviour, ...rest }, (screen) =>
          stateView(answer, node, screen),
        );
      }),
    );

  shared
    .cut(shared.limit(shared.on(program.command('mailbox'))))
    .argument('<id>', ID)
    .description('the messages that wait for an actor')
    .action(
      run<Cut & { limit: number }>(async (context, [id = ''], { on, limit, depth, bytes }) => {
        const { asked, node, answer } = await context.ask('mailbox', { id, limit, depth, bytes }, await context.on(on));
        context.output.answer('mailbox', { asked, node, ...answer }, (screen) => mailboxView(answer, node, screen));
      }),
    );

  shared
    .all(shared.cut(shared.on(program.command('trace'))))
    .argument('<id or pattern>', `${ID}; * is any text`)
    .description('messages in and out of actors, with their durations; ends by itself')
    .option('--max <n>', 'maximum number of messages', whole(1, 10_000), 20)
    .addOption(timeOption('--within <time>', 'maximum time', '10s'))
    .option('--type <type>', 'messages of this type only')
    .action(
      run<Cut & { max: number; within: number; type?: string; all?: boolean }>(
        async (context, [match = ''], { on, max, within, type = null, depth, bytes, all }) => {
          const { output } = context;
          const fields = { match, type, limit: max, withinMs: within, depth, bytes };
          const nodes =
            all === true ? await context.members() : [on === undefined ? undefined : await context.fullName(on)];
          const several = match.includes('*');
          const followed = await printStream(context, {
            kind: 'trace',
            document: 'trace',
            fields,
            nodes,
            limit: max,
            view: (item, screen) => traceView(item, several, screen),
            onOpen: (streams) =>
              output.say(
                `tracing ${match} on ${streams.map(({ node }) => node).join(', ')}: stops after ${max} messages or ${span(within)}`,
              ),
          });
          const [first] = followed.ends;
          if (first !== undefined) {
            const dropped = followed.ends.reduce((sum, end) => sum + end.dropped, 0);
            const reason = followed.items >= max ? 'limit' : first.reason;
            output.say(summaryView({ ...first, reason, items: followed.items, limit: max, dropped }));
          }
          return followed.exit;
        },
      ),
    );

  program
    .command('path')
    .argument('<request>', 'the x-request-id of an HTTP answer, or req= of a log line or trace')
    .description('one request through actors and nodes, hop by hop')
    .option('--limit <n>', 'maximum number of hops', whole(1, 1_000), 200)
    .action(
      run<{ limit: number }>(async (context, [id = ''], { limit }) => {
        const { asked, answer } = await context.ask('path', { id, limit });
        context.output.answer('path', { asked, ...answer }, (screen) => pathView(answer, screen));
      }),
    );

  shared
    .yes(shared.on(program.command('kill')))
    .argument('<id>', ID)
    .description('make an actor fail as if its handler had thrown')
    .option('--reason <text>', 'for its supervisor and the log', 'killed by bloomctl')
    .action(
      run<{ reason: string; yes?: boolean; on?: string }>(async (context, [id = ''], { reason, yes, on }) => {
        await context.confirm(`${id} will fail`, yes);
        const { asked, node, answer } = await context.ask('kill', { id, reason }, await context.on(on));
        context.output.answer('kill', { asked, node, ...answer }, () => [
          `${answer.path.slice(1)} on ${node} was killed.`,
        ]);
      }),
    );

  shared
    .yes(shared.on(shared.forTime(program.command('suspend'), 'how long')))
    .argument('<id>', ID)
    .description('stop an actor from handling messages for a while; its mailbox fills')
    .action(
      run<{ for: number; yes?: boolean; on?: string }>(async (context, [id = ''], { for: forMs, yes, on }) => {
        await context.confirm(`${id} will handle nothing for ${span(forMs)}`, yes);
        const { asked, node, answer } = await context.ask('suspend', { id, forMs }, await context.on(on));
        context.output.answer('suspend', { asked, node, ...answer }, () => [
          `${answer.path.slice(1)} on ${node} is suspended for ${span(forMs)}.`,
        ]);
      }),
    );

  shared
    .yes(shared.on(program.command('resume')))
    .argument('<id>', ID)
    .description('resume a suspended actor')
    .action(
      run<{ yes?: boolean; on?: string }>(async (context, [id = ''], { yes, on }) => {
        await context.confirm(`${id} will be resumed`, yes);
        const { asked, node, answer } = await context.ask('resume', { id }, await context.on(on));
        context.output.answer('resume', { asked, node, ...answer }, () => [
          `${answer.path.slice(1)} on ${node} ${answer.wasSuspended ? 'was resumed' : 'was not suspended'}.`,
        ]);
      }),
    );
}
