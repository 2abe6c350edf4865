import { SORTS, type TopSort } from '../top/model.js';
import { processView } from '../views/process.js';
import { span } from '../text/units.js';
import { whole } from '../values.js';
import { type Commands, oneOf, shared, timeOption } from './define.js';
import { saveStream } from './save.js';
import { showSeveral } from './several.js';

export function processCommands({ program, run }: Commands): void {
  shared
    .all(program.command('ps'))
    .argument('[node]')
    .description('a process: memory, event loop, garbage collection, handles, UDP')
    .action(
      run<{ all?: boolean }>(async (context, args, { all }) => {
        await showSeveral(context, {
          kind: 'ps',
          fields: {},
          nodes: await context.targets(args, all === true),
          view: (nodes, screen) =>
            nodes.flatMap((answer, i) => [...(i > 0 ? [''] : []), ...processView(answer.node, answer, screen)]),
        });
      }),
    );

  shared
    .all(shared.on(program.command('top')))
    .description('nodes and their busiest actors, full screen; keys are shown there')
    .addOption(timeOption('--every <time>', 'between two samples', '2s'))
    .option('--sort <figure>', `one of: ${SORTS.join(', ')}`, oneOf(...SORTS), 'queue')
    .option('--match <pattern>', 'only these actors')
    .option('--actors <n>', 'actors of each node', whole(1, 200), 20)
    .option('--frames <n>', 'number of frames to print instead of the full screen', whole(1, 100_000))
    .action(
      run<TopOptions>(async (context, _, { all, on, ...options }) => {
        const nodes = await context.targets(on === undefined ? [] : [on], all === true);
        // React and ink take longer to load than everything else together.
        const { runTop } = await import('../top/run.js');
        return await runTop(context, { ...options, nodes });
      }),
    );

  shared
    .file(program.command('profile'), 'default: <node>-<time>.cpuprofile or .heapprofile')
    .argument('<what>', 'cpu: where the time goes; heap: where memory is allocated', oneOf('cpu', 'heap'))
    .argument('[node]')
    .description('take a profile for the DevTools of Chromium')
    .addOption(timeOption('--for <time>', 'how long', '10s'))
    .option('--thread <thread>', 'main, or a media worker: media-1, media-2, ...', 'main')
    .action(
      run<{ for: number; thread: string; output?: string }>(async (context, [kind = 'cpu', ...names], options) => {
        const { for: forMs, thread, output } = options;
        const what = kind === 'heap' ? 'heap' : 'cpu';
        const [node = ''] = await context.targets(names, false);
        const stamp = new Date(context.machine.now()).toISOString().slice(0, 19).replaceAll(/[-:]/g, '');
        const ending = what === 'cpu' ? 'cpuprofile' : 'heapprofile';
        const file = output ?? `${node.split('@')[0]}-${stamp}.${ending}`;
        const words = `a ${what === 'cpu' ? 'CPU' : 'heap'} profile of ${span(forMs)}`;
        await saveStream(context, { kind: 'profile', fields: { what, forMs, thread }, node, file, what: words });
      }),
    );
}

interface TopOptions {
  all?: boolean;
  on?: string;
  every: number;
  sort: TopSort;
  match?: string;
  actors: number;
  frames?: number;
}
