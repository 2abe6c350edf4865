import type { Context } from '../context.js';
import * as answers from '../people/answers.js';
import { printable } from '../text/style.js';
import { seconds, whole } from '../values.js';
import { timeOf } from '../views/people.js';
import { type Commands, connect } from './define.js';
import { type PermissionFlags, permissionOptions, permissionsOf } from './peers.js';

/** The most that the server accepts. */
const MONTH_S = 2_592_000;

interface InvitationFlags extends PermissionFlags {
  readonly ttl?: number;
  readonly name?: string;
  readonly uses?: number;
}

/** Ways into a room for people without the API token. */
export function passCommands({ program, run }: Commands): void {
  permissionOptions(program.command('invite'))
    .argument('<room>')
    .description('print a link with which guests join a room')
    .option('--ttl <time>', 'validity; default: 24h, at most 30d', seconds(1, MONTH_S))
    .option('--uses <n>', 'number of guests; default: as many as the room takes', whole(1, 1_000_000))
    .option('--name <name>', 'name of every guest; without it they choose their own')
    .action(
      run<InvitationFlags>(async (context, [room = ''], { ttl, uses, name, ...flags }) => {
        const connection = await connect(context);
        const permissions = permissionsOf(flags);
        const { url: link, ...invited } = await connection.ask(answers.invitation, (client) =>
          client.createInvitation(room, {
            ...(ttl === undefined ? {} : { ttl }),
            ...(uses === undefined ? {} : { uses }),
            ...(name === undefined ? {} : { name }),
            ...(permissions === undefined ? {} : { permissions }),
          }),
        );
        const fields = { url: connection.url.href, room, link, ...invited };
        context.output.answer('invitation', fields, () => [printable(link ?? invited.token)]);
        if (link === null) note(context, 'the server has no page for guests (JF_DASHBOARD), so this is the bare token');
        note(context, `valid until ${timeOf(invited.expiresAt)}.`);
      }),
    );

  program
    .command('viewer')
    .argument('<room>')
    .description('print an address for watching the stream of a room')
    .option('--ttl <time>', 'validity; default: 24h, at most 30d', seconds(1, MONTH_S))
    .action(
      run<{ ttl?: number }>(async (context, [room = ''], { ttl }) => {
        const connection = await connect(context);
        const viewer = await connection.ask(answers.viewer, (client) =>
          client.createViewer(room, ttl === undefined ? {} : { ttl }),
        );
        context.output.answer('viewer', { url: connection.url.href, room, ...viewer }, () => [
          printable(viewer.hlsUrl),
        ]);
        note(context, `valid until ${timeOf(viewer.expiresAt)}, or until the room ends.`);
      }),
    );
}

/** Prints a remark for people, out of the way of what they copy. */
function note({ output }: Context, text: string): void {
  if (output.format === 'text') output.say(text);
}
