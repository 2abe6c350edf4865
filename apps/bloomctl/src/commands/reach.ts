import { names, PortMapperError } from '@bloom/port-mapper';
import { findCookie } from '../cookie.js';
import { EXIT, Failure } from '../exit.js';
import { diagnose } from '../reach/doctor.js';
import { Session } from '../reach/session.js';
import { table } from '../text/table.js';
import { doctorView } from '../views/doctor.js';
import type { Commands } from './define.js';

export function reachCommands({ program, run }: Commands): void {
  program
    .command('doctor')
    .argument('[node]', 'name@host, or a name on this machine')
    .description('check all layers up to a node, and name the one that fails')
    .action(
      run(async (context, [node = context.nodeOption]) => {
        const { mapperPort, machine, options, output } = context;
        const { timeout: timeoutMs } = options;
        const diagnosis = await diagnose({
          node,
          mapperPort,
          timeoutMs,
          machine,
          local: () => context.local(node),
          cookie: () => findCookie(options, machine),
          open: (entry, cookie) => Session.open({ entry, mapperPort, cookie, timeoutMs }, machine),
        });
        output.answer('doctor', { ok: diagnosis.failed === null, ...diagnosis }, (screen) =>
          doctorView(diagnosis, screen),
        );
        return diagnosis.failed?.exit ?? EXIT.ok;
      }),
    );

  program
    .command('names')
    .argument('[host]', 'default: this machine')
    .description('the nodes that the port mapper of a host knows')
    .action(
      run(async (context, [host = '127.0.0.1']) => {
        const { mapperPort: port, options } = context;
        const { nodes } = await names({ host, port, timeoutMs: options.timeout }).catch((error: unknown) => {
          if (!(error instanceof PortMapperError) || error.code !== 'PORT_MAPPER_UNREACHABLE') {
            throw new Failure(EXIT.unreachable, (error as Error).message, { cause: error });
          }
          throw new Failure(EXIT.unreachable, `no port mapper answers on ${host}:${port}`, {
            advice: 'no node runs there, or it uses another ERL_EPMD_PORT',
          });
        });
        const found = nodes.toSorted((a, b) => (a.name < b.name ? -1 : 1));
        context.output.answer('names', { host, port, nodes: found }, (screen) => [
          ...(found.length === 0
            ? []
            : table(
                [
                  { title: 'NAME', shrinksTo: 10 },
                  { title: 'PORT', align: 'right' },
                ],
                found.map((node) => [node.name, String(node.port)]),
                screen,
              )),
          `the port mapper on ${host}:${port} knows ${found.length === 1 ? '1 name' : `${found.length} names`}.`,
        ]);
      }),
    );
}
