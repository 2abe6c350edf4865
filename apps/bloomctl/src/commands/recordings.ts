import { InvalidArgumentError, Option } from 'commander';
import { sleep } from '@bloom/time';
import { EXIT, Failure } from '../exit.js';
import * as answers from '../people/answers.js';
import type { Connection } from '../people/connection.js';
import { printable } from '../text/style.js';
import { mixView, recordingsView } from '../views/people.js';
import { type Commands, connect, groupOf, shared } from './define.js';

/** Interval between two looks at a mix. */
const POLL_MS = 2_000;
/** A busy node may answer late. The wait ends after this long without any answer. */
const SILENCE_MS = 60_000;
/** The most that the server lists at once. */
const MAX_LISTED = 1_000;
/** Largest and smallest sides of a movie that the server makes, in pixels. */
const MAX_SIDE = { width: 3_840, height: 2_160 };
const MIN_SIDE = 64;

interface MixFlags {
  readonly layout?: 'grid' | 'speaker';
  readonly size?: { readonly width: number; readonly height: number };
  readonly skipMissing?: boolean;
  readonly wait?: boolean;
}

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
          client.rawRecordingSnapshot({ limit, ...(room === undefined ? {} : { room }) }),
        );
        context.output.answer('recordings', { url: connection.url.href, ...found }, (screen) =>
          recordingsView(found, screen),
        );
      }),
    );

  recordings
    .command('mix')
    .argument('<room>')
    .argument('<part>', 'as `recordings list` shows it')
    .description('make one movie of all tracks, which takes about as long as the recording')
    .addOption(new Option('--layout <layout>', 'default: grid').choices(['grid', 'speaker']))
    .option('--size <pixels>', 'even numbers; default: 1280x720', pixels)
    .option('--skip-missing', 'leave out parts that cannot be found: their node may be lost')
    .option('--wait', 'return when it has ended')
    .action(
      run<MixFlags>(async (context, [room = '', part = ''], { layout, size, skipMissing, wait }) => {
        const connection = await connect(context);
        const options = {
          ...(layout === undefined ? {} : { layout }),
          ...(skipMissing === true ? { skipMissing } : {}),
          ...size,
        };
        const asked = await connection.ask(answers.mix, (client) => client.mixRawRecording(room, part, options));
        const mix = wait === true ? await untilEnded(connection, { room, part }) : asked;
        const { file } = mix;
        const movie = file === undefined ? null : connection.fileUrl(room, part, file);
        const fields = { url: connection.url.href, room, part, mix, movie };
        context.output.answer('recording-mix', fields, (screen) => mixView(fields, screen));

        return mix.state === 'failed' ? EXIT.no : EXIT.ok;
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

type Place = Pick<answers.Recording, 'room' | 'part'>;

/** Resolves with a mix that has ended. @throws Failure */
async function untilEnded(connection: Connection, place: Place): Promise<answers.Mix> {
  let answeredAt = performance.now();
  for (;;) {
    try {
      const mix = await findMix(connection, place);
      if (mix.endedAt !== null) return mix;
      answeredAt = performance.now();
    } catch (error) {
      const isLate = error instanceof Failure && error.exit === EXIT.timeout;
      if (!isLate || performance.now() - answeredAt > SILENCE_MS) throw error;
    }
    await sleep(POLL_MS);
  }
}

/**
 * Returns the mix of a recording, which may be on any page of its room's list.
 * @throws Failure `timeout` when a node that may make it does not answer, `unknown` when all answered without it
 */
async function findMix(connection: Connection, { room, part }: Place): Promise<answers.Mix> {
  const silent = new Set<string>();
  for (let after: Place | undefined; ; ) {
    const query = { room, limit: MAX_LISTED, ...(after === undefined ? {} : { after }) };
    const page = await connection.ask(answers.recordings, (client) => client.rawRecordingSnapshot(query));
    const mix = page.recordings.find((each) => each.part === part)?.mix;
    if (mix !== undefined) return mix;
    for (const node of page.unreachable) silent.add(node);
    const last = page.recordings.at(-1);
    // Newest first: names of parts sort by time. A server whose pages do not get older would be asked for ever.
    const isLast = last === undefined || last.part <= part || (after !== undefined && last.part >= after.part);
    if (isLast || page.recordings.length < MAX_LISTED) break;
    after = last;
  }
  if (silent.size === 0) throw new Failure(EXIT.unknown, `nobody mixes ${printable(part)} any more`);
  throw new Failure(EXIT.timeout, `${printable([...silent].join(', '))} did not answer and may mix ${printable(part)}`);
}

function pixels(text: string): MixFlags['size'] {
  const [, width = 0, height = 0] = (/^(\d{2,4})x(\d{2,4})$/.exec(text) ?? []).map(Number);
  const isSide = (side: number, most: number): boolean => side >= MIN_SIDE && side <= most && side % 2 === 0;
  if (isSide(width, MAX_SIDE.width) && isSide(height, MAX_SIDE.height)) return { width, height };
  throw new InvalidArgumentError(`${JSON.stringify(text)} is not from 64x64 to 3840x2160 in even numbers.`);
}
