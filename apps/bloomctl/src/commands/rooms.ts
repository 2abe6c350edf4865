import { Option } from 'commander';
import { matcher } from '@bloom/inspection';
import type { RoomOptions } from '@bloom/server-sdk';
import { EXIT } from '../exit.js';
import * as answers from '../people/answers.js';
import { printable } from '../text/style.js';
import { seconds, whole } from '../values.js';
import { roomListView } from '../views/people.js';
import { movedLine } from '../views/placement.js';
import { type Commands, connect, groupOf, shared } from './define.js';

/** Longer than any call. */
const YEAR_S = 31_536_000;

interface RoomFlags {
  readonly maxPeers?: number;
  readonly videoCodec?: 'h264' | 'vp8';
  readonly webhook?: string;
  readonly emptyFor?: number;
  readonly awayFor?: number;
}

/** Rooms over the HTTP API. `rooms` alone and `rooms move` ask a node. */
export function roomCommands(commands: Commands): void {
  const { run } = commands;
  const rooms = groupOf(commands, 'rooms', 'the rooms of the cluster');

  shared
    .limit(rooms.command('list'))
    .description('the rooms of the cluster, over the HTTP API')
    .option('--match <pattern>', 'room ids; * is any text')
    .action(
      run<{ limit: number; match?: string }>(async (context, _, { limit, match }) => {
        const connection = await connect(context);
        const found = await connection.ask(answers.rooms, (client) => client.snapshot());
        const wanted = match === undefined ? () => true : matcher(match);
        const matching = found.rooms.filter(({ id }) => wanted(id)).toSorted((a, b) => (a.id < b.id ? -1 : 1));
        const fields = {
          url: connection.url.href,
          total: matching.length,
          unreachable: found.unreachable,
          rooms: matching.slice(0, limit),
        };
        context.output.answer('room-list', fields, (screen) => roomListView(fields, screen));
      }),
    );

  rooms
    .command('create')
    .argument('[room]', 'letters, digits and hyphens; default: a new id')
    .description('create a room on the least loaded node')
    .option('--max-peers <n>', 'maximum number of people', whole(0, 1_000_000))
    .addOption(new Option('--video-codec <codec>', 'the only video codec').choices(['h264', 'vp8']))
    .option('--webhook <url>', 'address that receives every notification of the room')
    .option('--empty-for <time>', 'remove the room after this time with nobody connected', seconds(1, YEAR_S))
    .option('--away-for <time>', 'remove people after this time without a connection', seconds(1, YEAR_S))
    .action(
      run<RoomFlags>(async (context, [roomId], flags) => {
        const { maxPeers, videoCodec, webhook: webhookUrl, emptyFor, awayFor } = flags;
        const connection = await connect(context);
        const options: RoomOptions = {
          ...(roomId === undefined ? {} : { roomId }),
          ...(maxPeers === undefined ? {} : { maxPeers }),
          ...(videoCodec === undefined ? {} : { videoCodec }),
          ...(webhookUrl === undefined ? {} : { webhookUrl }),
          ...(emptyFor === undefined ? {} : { peerlessPurgeTimeout: emptyFor }),
          ...(awayFor === undefined ? {} : { peerDisconnectedTimeout: awayFor }),
        };
        const { room, address } = await connection.ask(answers.createdRoom, (client) => client.createRoom(options));
        context.output.answer('room-created', { url: connection.url.href, room: room.id, address }, () => [
          printable(room.id),
        ]);
        if (context.output.format === 'text') context.output.say(`created on ${printable(address)}.`);
      }),
    );

  shared
    .yes(rooms.command('move'))
    .argument('<room>')
    .argument('[node]', 'default: the node that a new room would go to')
    .description('move a room to another node, where its call continues; asks a node')
    .action(
      run<{ yes?: boolean }>(async (context, [room = '', name], { yes }) => {
        const to = name === undefined ? null : await context.fullName(name);
        const where = to ?? 'another node';
        await context.confirm(`everybody in ${printable(room)} will reconnect to ${where}`, yes);
        if (context.output.format === 'text') context.output.say(`${printable(room)} moves to ${where} ...`);
        const { asked, answer } = await context.ask('room-move', { room, to });
        context.output.answer('room-move', { asked, ...answer }, () => [movedLine(answer)]);
        return answer.to === null ? EXIT.no : EXIT.ok;
      }),
    );

  shared
    .yes(rooms.command('delete'))
    .argument('<room>')
    .description('remove a room; everybody in it is disconnected')
    .action(
      run<{ yes?: boolean }>(async (context, [room = ''], { yes }) => {
        const connection = await connect(context);
        await context.confirm(`everybody in ${printable(room)} will be disconnected`, yes);
        await connection.tell((client) => client.deleteRoom(room));
        context.output.answer('room-deleted', { url: connection.url.href, room }, () => [
          `${printable(room)} was removed.`,
        ]);
      }),
    );
}
