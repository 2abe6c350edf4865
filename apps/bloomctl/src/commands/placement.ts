import { decisionView, loadView } from '../views/placement.js';
import type { Commands } from './define.js';

export function placementCommands({ program, run }: Commands): void {
  program
    .command('load')
    .description('the figures that placement compares')
    .option('--explain', 'how they are compared')
    .action(
      run<{ explain?: boolean }>(async (context, _, { explain = false }) => {
        const { asked, answer } = await context.ask('load', {});
        context.output.answer('load', { ...answer, asked }, (screen) => loadView(answer, explain, screen));
      }),
    );

  const placement = program.command('placement').description('where rooms go, and why');
  placement
    .command('explain')
    .argument('<room>')
    .description('why a room is where it is')
    .action(
      run(async (context, [room = '']) => {
        const { answer } = await context.ask('placement-explain', { room });
        context.output.answer('placement', answer, (screen) => decisionView(answer, screen));
      }),
    );
  placement
    .command('dry-run')
    .description('where the next room would go; nothing is created or reserved')
    .action(
      run(async (context) => {
        const { answer } = await context.ask('placement-dry-run', {});
        context.output.answer('placement', answer, (screen) => decisionView(answer, screen));
      }),
    );
}
