import { whole } from '../values.js';
import { componentsView, componentView, mediaView, peerView, roomsView, roomView } from '../views/media.js';
import { type Commands, shared, timeOption } from './define.js';
import { saveStream } from './save.js';

interface Scope {
  limit: number;
  on?: string;
}

export function mediaCommands({ program, run }: Commands): void {
  shared
    .on(shared.limit(program.command('rooms')))
    .description('the rooms of the cluster')
    .option('--match <pattern>', 'room ids; * is any text')
    .action(
      run<Scope & { match?: string }>(async (context, _, { match = null, limit, on }) => {
        const scope = on === undefined ? 'cluster' : 'node';
        const { asked, answer } = await context.ask('rooms', { match, limit, scope }, await context.on(on));
        context.output.answer('rooms', { asked, ...answer }, (screen) => roomsView(answer, screen));
      }),
    );

  shared
    .on(program.command('room'))
    .argument('<room>')
    .description('one room: its peers and components')
    .action(
      run<{ on?: string }>(async (context, [room = ''], { on }) => {
        const { asked, answer } = await context.ask('room', { room }, await context.on(on));
        context.output.answer('room', { asked, ...answer }, (screen) => roomView(answer, screen));
      }),
    );

  shared
    .on(program.command('media'))
    .argument('<room>')
    .description('which media worker each peer of a room is on, and why')
    .action(
      run<{ on?: string }>(async (context, [room = ''], { on }) => {
        const { asked, answer } = await context.ask('media', { room }, await context.on(on));
        context.output.answer('media', { asked, ...answer }, (screen) => mediaView(answer, screen));
      }),
    );

  shared
    .on(program.command('peer'))
    .argument('<room>')
    .argument('<peer>')
    .description('what a peer actually sends and receives')
    .addOption(timeOption('--sample <time>', 'time between two samples, for the rates', '1s'))
    .action(
      run<{ sample: number; on?: string }>(async (context, [room = '', peer = ''], { sample, on }) => {
        const { asked, answer } = await context.ask(
          'peer',
          { room, peer, sampleMs: sample },
          { ...(await context.on(on)), timeoutMs: context.options.timeout + sample },
        );
        context.output.answer('peer', { asked, ...answer }, (screen) => peerView(answer, screen));
      }),
    );

  shared
    .on(shared.limit(program.command('components')))
    .argument('[room]', 'default: all rooms')
    .description('the components of a room or of the cluster')
    .action(
      run<Scope>(async (context, [room = null], { limit, on }) => {
        const scope = on === undefined ? 'cluster' : 'node';
        const { asked, answer } = await context.ask('components', { room, limit, scope }, await context.on(on));
        context.output.answer('components', { asked, ...answer }, (screen) => componentsView(answer, screen));
      }),
    );

  shared
    .on(program.command('component'))
    .argument('<room>')
    .argument('<component>')
    .description('one component: properties, state, files')
    .action(
      run<{ on?: string }>(async (context, [room = '', component = ''], { on }) => {
        const { asked, answer } = await context.ask('component', { room, component }, await context.on(on));
        context.output.answer('component', { asked, ...answer }, (screen) => componentView(answer, screen));
      }),
    );

  shared
    .file(shared.on(program.command('pcap')), 'file for Wireshark; default: <peer>.pcap')
    .argument('<room>')
    .argument('<peer>')
    .description('the RTP headers that a peer sends and receives, as a capture file')
    .addOption(timeOption('--for <time>', 'how long', '5s'))
    .option('--max <n>', 'maximum number of packets', whole(1, 1_000_000), 100_000)
    .option('--headers', 'headers only; always on, payloads are never captured')
    .action(
      run<{ for: number; max: number; output?: string; on?: string }>(
        async (context, [room = '', peer = ''], { for: withinMs, max: limit, output, on }) => {
          const node = on === undefined ? undefined : await context.fullName(on);
          const file = output ?? `${peer.replaceAll(/[^\w.-]/g, '_')}.pcap`;
          await saveStream(context, {
            kind: 'pcap',
            fields: { room, peer, withinMs, limit },
            node,
            file,
            what: `packets of ${peer} in ${room}`,
          });
        },
      ),
    );
}
