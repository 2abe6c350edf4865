import { type Command, InvalidArgumentError, Option } from 'commander';
import type { PeerPermissions } from '@bloom/server-sdk';
import { EXIT, Failure } from '../exit.js';
import * as answers from '../people/answers.js';
import type { Connection } from '../people/connection.js';
import { printable } from '../text/style.js';
import { seconds } from '../values.js';
import { addedView, mutedView, peerListView, permissionsView } from '../views/people.js';
import { type Commands, connect, groupOf, oneOf, shared } from './define.js';

/** People of a room over the HTTP API. `peer` asks a node about the media of one. */
export function peerCommands(commands: Commands): void {
  const { run } = commands;
  const peers = groupOf(commands, 'peers', 'the people of a room, over the HTTP API');

  peers
    .command('list')
    .argument('<room>')
    .description('the people of a room, their tracks and permissions')
    .action(
      run(async (context, [room = '']) => {
        const connection = await connect(context);
        const found = await connection.ask(answers.room, (client) => client.getRoom(room));
        const people = found.peers.map((peer) => ({ ...peer, name: answers.nameOf(peer) }));
        const fields = { url: connection.url.href, room, maxPeers: found.config.maxPeers ?? null, peers: people };
        context.output.answer('peer-list', fields, (screen) => peerListView(people, screen));
      }),
    );

  permissionOptions(peers.command('add'))
    .argument('<room>')
    .description('add a person and print the token with which their client joins')
    .option('--name <name>', 'their name, which their client cannot change')
    .option('--ttl <time>', 'validity of the token; default: 24h', seconds(1, 31_536_000))
    .action(
      run<PermissionFlags & { name?: string; ttl?: number }>(async (context, [room = ''], { name, ttl, ...flags }) => {
        const connection = await connect(context);
        const permissions = permissionsOf(flags);
        const added = await connection.ask(answers.addedPeer, (client) =>
          client.addPeer(room, {
            ...(name === undefined ? {} : { metadata: { name } }),
            ...(ttl === undefined ? {} : { ttl }),
            ...(permissions === undefined ? {} : { permissions }),
          }),
        );
        const { peer, ...addresses } = added;
        const fields = { url: connection.url.href, room, peer: peer.id, ...addresses };
        context.output.answer('peer-added', fields, (screen) => addedView(fields, screen));
      }),
    );

  shared
    .yes(peers.command('kick'))
    .argument('<room>')
    .argument('<peer>', 'id, as `peers list` shows it')
    .description('remove a person; their token stops working')
    .option('--reason <text>', 'what their client is told, up to 100 bytes', reason)
    .action(
      run<{ yes?: boolean; reason?: string }>(async (context, [room = '', peer = ''], { yes, reason: why }) => {
        const connection = await connect(context);
        await context.confirm(`${printable(peer)} will be removed from ${printable(room)}`, yes);
        await connection.tell((client) => client.deletePeer(room, peer, why));
        context.output.answer('peer-kicked', { url: connection.url.href, room, peer }, () => [
          `${printable(peer)} was removed from ${printable(room)}.`,
        ]);
      }),
    );

  peers
    .command('mute')
    .argument('<room>')
    .argument('<peer>')
    .argument('[track]', 'default: all of their tracks')
    .description('withhold tracks of a person from everyone')
    .addOption(new Option('--kind <kind>', 'tracks of this kind only').choices(['audio', 'video']))
    .option('--off', 'let them be heard and seen again')
    .action(
      run<MuteFlags>(async (context, [room = '', peer = '', track], { kind, off }) => {
        const connection = await connect(context);
        const tracks = track === undefined ? await tracksOf(connection, { room, peer }, kind) : [track];
        const muted = off !== true;
        const changed: answers.Track[] = [];
        for (const id of tracks) {
          changed.push(await connection.ask(answers.track, (client) => client.muteTrack(room, peer, { id, muted })));
        }
        const fields = { url: connection.url.href, room, peer, muted, tracks: changed };
        context.output.answer('peer-muted', fields, () => mutedView(fields));
      }),
    );

  permissionOptions(peers.command('permissions'))
    .argument('<room>')
    .argument('<peer>')
    .description('show what a person may do, or change it with immediate effect')
    .action(
      run<PermissionFlags>(async (context, [room = '', peer = ''], flags) => {
        const connection = await connect(context);
        const permissions = permissionsOf(flags);
        const found =
          permissions === undefined
            ? await personOf(connection, { room, peer })
            : await connection.ask(answers.peer, (client) => client.updatePeer(room, peer, { permissions }));
        // The server shows permissions only once some are set.
        const shown = found.permissions ?? { publish: true, subscribe: true, metadata: true };
        const fields = { url: connection.url.href, room, peer, permissions: shown };
        context.output.answer('peer-permissions', fields, (screen) => permissionsView(shown, screen));
      }),
    );
}

interface Place {
  readonly room: string;
  readonly peer: string;
}

interface MuteFlags {
  readonly kind?: 'audio' | 'video';
  readonly off?: boolean;
}

async function personOf(connection: Connection, { room, peer }: Place): Promise<answers.Peer> {
  const { peers } = await connection.ask(answers.room, (client) => client.getRoom(room));
  const found = peers.find(({ id }) => id === peer);
  if (found === undefined) {
    throw new Failure(EXIT.unknown, `Peer ${printable(peer)} does not exist`, {
      advice: `bloomctl peers list ${printable(room)} has the ids`,
    });
  }
  return found;
}

async function tracksOf(connection: Connection, place: Place, kind: MuteFlags['kind']): Promise<string[]> {
  const { tracks } = await personOf(connection, place);
  const found = tracks.filter(({ type }) => kind === undefined || type === kind).map(({ id }) => id);
  if (found.length === 0) {
    throw new Failure(EXIT.unknown, `${printable(place.peer)} publishes no ${kind ?? 'track'}`, {
      advice: 'to silence people whatever they publish later: bloomctl peers permissions --publish none',
    });
  }
  return found;
}

export interface PermissionFlags {
  readonly publish?: boolean | ('audio' | 'video' | 'data')[];
  readonly subscribe?: 'yes' | 'no';
  readonly metadata?: 'yes' | 'no';
}

export function permissionOptions(command: Command): Command {
  return command
    .option('--publish <kinds>', 'all, none, or some of audio,video,data', kinds)
    .option('--subscribe <yes|no>', 'receive the tracks of others', oneOf('yes', 'no'))
    .option('--metadata <yes|no>', 'show what their client says about itself', oneOf('yes', 'no'));
}

/** Returns the permissions that were named; undefined if none were. */
export function permissionsOf({ publish, subscribe, metadata }: PermissionFlags): Partial<PeerPermissions> | undefined {
  if (publish === undefined && subscribe === undefined && metadata === undefined) return undefined;

  return {
    ...(publish === undefined ? {} : { publish }),
    ...(subscribe === undefined ? {} : { subscribe: subscribe === 'yes' }),
    ...(metadata === undefined ? {} : { metadata: metadata === 'yes' }),
  };
}

function kinds(text: string): PermissionFlags['publish'] {
  if (text === 'all') return true;
  if (text === 'none') return false;
  const parse = oneOf('audio', 'video', 'data');

  return [...new Set(text.split(','))].map(parse);
}

function reason(text: string): string {
  if (Buffer.byteLength(text) <= 100) return text;
  throw new InvalidArgumentError(`it has ${Buffer.byteLength(text)} bytes; at most 100 are allowed.`);
}
