import { EXIT, Failure } from '../exit.js';
import type { Commands } from './define.js';

export function schemaCommand({ program, run }: Commands): void {
  program
    .command('schema')
    .argument('[kind]', 'value of "kind" in the document; default: the list of them')
    .description('JSON schemas of the documents that --json prints')
    .action(
      run(async (context, [kind]) => {
        // Load on demand: schemas take longer to load than everything else together.
        const { jsonSchemas } = await import('../documents.js');
        const schemas = await jsonSchemas();
        if (kind === undefined) {
          context.output.answer('schemas', { schemas }, () => Object.keys(schemas).toSorted());
          return;
        }
        const schema = schemas[kind];
        if (schema === undefined) throw new Failure(EXIT.usage, `there is no kind of document called ${kind}`);
        context.output.lines([JSON.stringify(schema, null, 2)]);
      }),
    );
}
