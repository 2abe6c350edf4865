import type { RequestFields } from '@bloom/inspection';
import { untilEmpty } from '../emptying.js';
import { EXIT, Failure } from '../exit.js';
import { clusterView, drainView, eventView, faultsView, nodesView } from '../views/cluster.js';
import { duration, whole } from '../values.js';
import { span } from '../text/units.js';
import { type Commands, shared } from './define.js';
import { showSeveral } from './several.js';
import { printStream } from '../streams.js';

/** How long rooms that cannot move at first are retried. */
const MOVE_MS = 30_000;
const DAY_MS = 86_400_000;
/** Maximum number of events that a node sends in one stream. */
const MAX_EVENTS = 100_000;

export function clusterCommands({ program, run }: Commands): void {
  program
    .command('nodes')
    .description('the members: state, version, load, links, clocks')
    .action(
      run(async (context) => {
        const { asked, answer } = await context.ask('nodes', {});
        context.output.answer('nodes', { asked, ...answer }, (screen) => nodesView(answer, asked, screen));
      }),
    );

  const cluster = program
    .command('cluster')
    .description('which members see each other, and whether the cluster is split');
  cluster.action(
    run(async (context) => {
      const { asked, answer } = await context.ask('cluster', {});
      context.output.answer('cluster', { asked, ...answer }, (screen) => clusterView(answer, context.now, screen));
    }),
  );
  shared
    .all(cluster.command('events'))
    .description('up, down, draining, cut, split, healed')
    .option('-f, --follow', 'continue until Ctrl-C')
    .option('--backlog <n>', 'past events to begin with', whole(0, 1_000), 50)
    .action(
      run<{ follow?: boolean; backlog: number; all?: boolean }>(async (context, _, options) => {
        const nodes = await context.targets([], options.all === true);
        const withinMs = options.follow === true ? DAY_MS : 250;
        const followed = await printStream(context, {
          kind: 'cluster-events',
          document: 'event',
          fields: { backlog: options.backlog, limit: MAX_EVENTS, withinMs },
          nodes,
          view: eventView,
          isPast: options.follow !== true,
          isEndless: options.follow === true,
        });
        return followed.exit;
      }),
    );

  shared
    .yes(program.command('drain'))
    .argument('<node>')
    .description('keep new rooms away from a node; shows what is left there')
    .option('--deadline <time>', 'take rooms again after this time', duration)
    .option('--wait', 'return when the last room has ended or moved')
    .option('--move', 'move its rooms to other nodes, where their calls continue')
    .option('--move-timeout <time>', 'how long --move retries rooms that cannot move at first (default: 30s)', duration)
    .action(
      run<{ deadline?: number; wait?: boolean; move?: boolean; moveTimeout?: number; yes?: boolean }>(
        async (context, [name = ''], { deadline, wait, move, moveTimeout, yes }) => {
          if (move !== true && moveTimeout !== undefined)
            throw new Failure(EXIT.usage, '--move-timeout is for rooms that move: add --move');
          const node = await context.fullName(name);
          await context.confirm(`${node} will ${move === true ? 'move its rooms and ' : ''}take no new rooms`, yes);
          const moveMs = move === true ? (moveTimeout ?? MOVE_MS) : null;
          const { asked, answer } = await context.ask('drain', { deadlineMs: deadline ?? null, moveMs }, { node });
          if (move === true && answer.movesUntil === undefined)
            throw new Failure(EXIT.no, `${node} is draining, but runs a release that cannot move its rooms`);
          context.output.answer('drain', { asked, node, ...answer }, (screen) =>
            drainView({ ...answer, node }, context.now, screen),
          );
          if (wait !== true) return;
          const { output } = context;
          const ask = async () => (await context.ask('node', {}, { node })).answer;
          const say = (line: string): void => (output.format === 'text' ? output.say(line) : undefined);
          await untilEmpty({ node, ask, say });
        },
      ),
    );

  program
    .command('undrain')
    .argument('<node>')
    .option('--yes', 'do not ask for confirmation')
    .description('let a node take new rooms again')
    .action(
      run<{ yes?: boolean }>(async (context, [name = ''], { yes }) => {
        const node = await context.fullName(name);
        await context.confirm(`${node} will take new rooms again`, yes);
        const { asked, answer } = await context.ask('undrain', {}, { node });
        const { wasDraining, draining = false } = answer;
        context.output.answer('undrain', { asked, node, ...answer }, () => [
          draining
            ? `${node} accepts no new rooms: it is starting or shutting down.`
            : `${node} takes new rooms${wasDraining ? ' again' : ', as it did before'}.`,
        ]);
        return draining ? EXIT.no : EXIT.ok;
      }),
    );

  const link = program.command('link').description('links between nodes');
  shared
    .yes(shared.forTime(link.command('cut'), 'how long'))
    .argument('<a>')
    .argument('<b>')
    .description('simulate a netsplit: a drops its link to b, and neither dials nor accepts it')
    .action(
      run<{ for: number; yes?: boolean }>(async (context, [a = '', b = ''], { for: forMs, yes }) => {
        const [node, to] = [await context.fullName(a), await context.fullName(b)];
        await context.confirm(`the link between ${node} and ${to} will be cut for ${span(forMs)}`, yes);
        const { asked, answer } = await context.ask('link-cut', { to, forMs }, { node });
        context.output.answer('link-cut', { asked, ...answer }, () => [
          `${answer.from} and ${answer.to} have no link for ${span(forMs)}.`,
        ]);
      }),
    );

  shared
    .yes(shared.forTime(program.command('move-fault'), 'how long it waits for a move'))
    .argument('<node>')
    .argument('<point>', 'point of a move (docs/reference/moving.md)')
    .argument('<does>', 'kill, or freeze, which lasts until SIGCONT')
    .description('kill or freeze the process of a node when a move of a room next reaches a point')
    .action(
      run<{ for: number; yes?: boolean }>(async (context, args, { for: forMs, yes }) => {
        const [name = '', point = '', does = ''] = args;
        const node = await context.fullName(name);
        await context.confirm(`${node} will stop when a move reaches ${point}: ${does}`, yes);
        // The node refuses points and faults that it does not know.
        const fields = { point, does, forMs } as RequestFields<'move-fault'>;
        const { asked, answer } = await context.ask('move-fault', fields, { node });
        context.output.answer('move-fault', { asked, node, ...answer }, () => [
          `${node} will stop (${answer.does}) when a move reaches ${answer.point} within ${span(forMs)}.`,
        ]);
      }),
    );

  shared
    .all(program.command('faults'))
    .argument('[node]')
    .description('changes made by tools that are still in effect')
    .action(
      run<{ all?: boolean }>(async (context, args, { all }) => {
        await showSeveral(context, {
          kind: 'faults',
          fields: {},
          nodes: await context.targets(args, all === true),
          view: (nodes, screen) => nodes.flatMap((answer) => faultsView(answer, context.now, screen)),
        });
      }),
    );
}
