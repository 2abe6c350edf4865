import * as answers from '../people/answers.js';
import { printable } from '../text/style.js';
import { recordingsView } from '../views/people.js';
import { type Commands, connect, groupOf, shared } from './define.js';

/** Recordings of tracks, which Recording components make. */
export function recordingCommands(commands: Commands): void {
  const { run } = commands;
  const recordings = groupOf(commands, 'recordings', 'recordings of tracks, over the HTTP API');

  shared
    .limit(recordings.command('list'))
    .argument('[room]', 'default: all rooms')
    .description('recordings with their state, newest first')
    .action(
      run<{ limit: number }>(async (context, [room], { limit }) => {
        const connection = await connect(context);
        const found = await connection.ask(answers.recordings, (client) =>
          client.listRawRecordings('cluster', { limit, ...(room === undefined ? {} : { room }) }),
        );
        context.output.answer('recordings', { url: connection.url.href, recordings: found }, (screen) =>
          recordingsView(found, screen),
        );
      }),
    );

  shared
    .yes(recordings.command('rm'))
    .argument('<room>')
    .argument('<part>', 'as `recordings list` shows it')
    .description('remove a recording from every node; objects of a complete upload stay')
    .action(
      run<{ yes?: boolean }>(async (context, [room = '', part = ''], { yes }) => {
        const connection = await connect(context);
        const what = `${printable(part)} of ${printable(room)}`;
        await context.confirm(`${what} will be removed`, yes);
        await connection.tell((client) => client.deleteRawRecording(room, part));
        context.output.answer('recording-removed', { url: connection.url.href, room, part }, () => [
          `${what} was removed.`,
        ]);
      }),
    );
}
