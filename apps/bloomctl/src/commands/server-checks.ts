import * as answers from '../people/answers.js';
import { printable } from '../text/style.js';
import { counted } from '../text/units.js';
import { whole } from '../values.js';
import { type Commands, connect, groupOf } from './define.js';
import { tell } from './scripts.js';

/** The most that the server lists at once. */
const MAX_RECORDINGS = 1_000;

/** Checks for scripts that need the API token only. */
export function serverCheckCommands(commands: Commands): void {
  const { run } = commands;
  const check = groupOf(commands, 'check', 'checks for scripts');

  check
    .command('server')
    .description('the server answers over HTTP, takes the token and accepts rooms')
    .action(
      run(async (context) => {
        const connection = await connect(context);
        const { version, draining } = await connection.ask(answers.health, (client) => client.health());
        const ok = draining !== true;
        const { href: url, host } = connection.url;
        const sentence = `${host} answers as ${printable(version)}, ${ok ? 'and accepts rooms' : 'but accepts no new rooms'}`;

        return tell(context, { check: 'server', ok, sentence }, { url, version, unreachable: [] });
      }),
    );

  check
    .command('room')
    .argument('<room>')
    .description('enough people are connected to a room')
    .requiredOption('--people <n>', 'minimum number of people', whole(0, 1_000_000))
    .action(
      run<{ people: number }>(async (context, [id = ''], { people }) => {
        const connection = await connect(context);
        const { peers } = await connection.ask(answers.room, (client) => client.getRoom(id));
        const connected = peers.filter(({ status }) => status === 'connected').length;
        const sentence = `${connected} of ${counted(people, 'person', 'people')} in ${printable(id)}`;
        const fields = { url: connection.url.href, room: id, expected: people, connected, unreachable: [] };

        return tell(context, { check: 'room', ok: connected >= people, sentence }, fields);
      }),
    );

  check
    .command('recordings')
    .argument('[room]', 'default: all rooms')
    .description(`all nodes answer, and none of the last ${MAX_RECORDINGS} recordings has failed`)
    .action(
      run(async (context, [room]) => {
        const connection = await connect(context);
        const { recordings, unreachable } = await connection.ask(answers.recordings, (client) =>
          client.rawRecordingSnapshot({ limit: MAX_RECORDINGS, ...(room === undefined ? {} : { room }) }),
        );
        const failed = recordings.filter(({ state }) => state === 'failed');
        const [first] = failed;
        const words =
          first === undefined
            ? `${counted(recordings.length, 'recording')}, and none has failed`
            : `${failed.length} of ${counted(recordings.length, 'recording')} failed, last ${printable(first.part)} of ${printable(first.room)}`;
        const isWhole = unreachable.length === 0;
        const sentence = isWhole ? words : `${words}; ${printable(unreachable.join(', '))} did not answer`;
        const fields = {
          url: connection.url.href,
          failed: failed.map(({ room: of, part }) => ({ room: of, part })),
          unreachable,
        };

        return tell(context, { check: 'recordings', ok: isWhole && first === undefined, sentence }, fields);
      }),
    );
}
