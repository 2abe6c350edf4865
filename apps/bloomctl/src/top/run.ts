import { EXIT, type ExitCode } from '../exit.js';
import type { Context } from '../context.js';
import { follow } from '../following.js';
import { printStream } from '../streams.js';
import { topFrame } from './frame.js';
import { fieldsOf, newModel, type TopItem, type TopRunOptions, withItem, withLost } from './model.js';

/** Maximum number of items in one stream. */
const MAX_ITEMS = 100_000;

/** Shows a full screen on a terminal, frame after frame elsewhere, and documents with `--jsonl`. */
export async function runTop(context: Context, options: TopRunOptions): Promise<ExitCode> {
  const { output, machine } = context;
  const { nodes, frames } = options;
  if (output.format !== 'text') {
    const looks = frames ?? (output.format === 'json' ? 1 : 100_000);
    const followed = await printStream(context, {
      kind: 'top',
      document: 'top',
      fields: fieldsOf(options, looks),
      nodes,
      limit: looks * nodes.length,
      view: () => [],
    });
    return followed.exit;
  }
  if (frames === undefined && machine.stdout.isTTY === true && machine.stdin.isTTY === true) {
    const { runFullScreen } = await import('./app.js');
    return await runFullScreen(context, options);
  }
  return await printFrames(context, options, frames ?? 1);
}

/** Prints a frame whenever all sending nodes have sent an item. */
async function printFrames(context: Context, options: TopRunOptions, frames: number): Promise<ExitCode> {
  const { output, machine } = context;
  let model = newModel(options.nodes, options.every, options.sort);
  let fresh = new Set<string>();
  let printed = 0;
  let awaited: readonly string[] = options.nodes;
  const print = (): boolean => {
    if (awaited.length === 0 || printed >= frames || !awaited.every((node) => fresh.has(node))) return printed < frames;
    fresh = new Set();
    printed += 1;
    output.lines([...(printed > 1 ? [''] : []), ...topFrame(model, machine.now(), output.screen)]);
    return printed < frames;
  };
  // Items that arrive before every node's first answer make no frame.
  const early = Math.ceil(context.options.timeout / Math.max(250, options.every));
  const followed = await follow(context, {
    kind: 'top',
    fields: fieldsOf(options, Math.min(frames * 2 + early, MAX_ITEMS)),
    nodes: options.nodes,
    onItem: (item: TopItem) => {
      model = withItem(model, item);
      fresh.add(item.node);
      return print();
    },
    onOpen: (streams) => {
      const opened = streams.map(({ node }) => node);
      for (const node of options.nodes) if (!opened.includes(node)) model = withLost(model, node, 'silent');
      // A node may be lost before the last one has answered.
      awaited = opened.filter((node) => !model.lost.has(node));
      print();
    },
    onEnd: ({ reason }, node) => {
      if (reason === 'limit' || reason === 'stopped') return;
      awaited = awaited.filter((other) => other !== node);
      model = withLost(model, node, reason);
      print();
    },
  });
  return printed >= frames ? EXIT.ok : followed.exit;
}
