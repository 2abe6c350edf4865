import { Box, render, Text, useApp, useInput, useStdout } from 'ink';
import { useEffect, useReducer, useRef } from 'react';
import type { OpenStream } from '@bloom/inspection';
import type { Asker } from '../asker.js';
import type { Context } from '../context.js';
import { EXIT, type ExitCode } from '../exit.js';
import { toFailure } from '../reach/failures.js';
import type { Screen } from '../text/style.js';
import { actorView } from '../views/actor.js';
import { topFrame } from './frame.js';
import {
  fieldsOf,
  type Key,
  newModel,
  pressed,
  type TopModel,
  type TopRunOptions,
  withItem,
  withLost,
} from './model.js';

const ENTER_SCREEN = '\u001b[?1049h\u001b[H';
const LEAVE_SCREEN = '\u001b[?1049l';
const LOOKS = 100_000;

/** Subscriptions to all nodes, renewed when the order changes. */
class Feed {
  readonly #asker: Asker;
  readonly #options: TopRunOptions;
  readonly #change: (update: (model: TopModel) => TopModel) => void;
  #open: OpenStream[] = [];
  #round = 0;

  constructor(asker: Asker, options: TopRunOptions, change: (update: (model: TopModel) => TopModel) => void) {
    this.#asker = asker;
    this.#options = options;
    this.#change = change;
  }

  async start(sort: TopModel['sort']): Promise<void> {
    this.stop();
    const round = this.#round;
    const fields = fieldsOf({ ...this.#options, sort }, LOOKS);
    await Promise.all(
      this.#options.nodes.map(async (node) => {
        try {
          const stream = await this.#asker.stream('top', fields, {
            node,
            onItem: (item) => {
              if (round !== this.#round) return false;
              this.#change((model) => withItem(model, item));
              return true;
            },
          });
          if (round !== this.#round) {
            stream.stop();
            return;
          }
          this.#open.push(stream);
          const end = await stream.ended;
          if (round === this.#round) this.#change((model) => withLost(model, node, end.message ?? end.reason));
        } catch (error) {
          this.#change((model) => withLost(model, node, toFailure(error, node).message));
        }
      }),
    );
  }

  stop(): void {
    this.#round += 1;
    for (const stream of this.#open.splice(0)) stream.stop();
  }
}

interface TopProps {
  readonly context: Context;
  readonly asker: Asker;
  readonly options: TopRunOptions;
}

function Top({ context, asker, options }: TopProps) {
  const { exit } = useApp();
  const { stdout } = useStdout();
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const model = useRef(newModel(options.nodes, options.every, options.sort));
  const change = (update: (model: TopModel) => TopModel): void => {
    model.current = update(model.current);
    redraw();
  };
  const feed = useRef<Feed>(null);
  useEffect(() => {
    const live = new Feed(asker, options, change);
    feed.current = live;
    void live.start(options.sort);
    const timer = setInterval(redraw, 1_000);
    stdout.on('resize', redraw);
    return () => {
      clearInterval(timer);
      stdout.off('resize', redraw);
      live.stop();
    };
  }, []);

  const screen: Screen = { width: stdout.columns || 80, colour: context.output.screen.colour };
  const open = async (node: string, path: string): Promise<void> => {
    const lines = await asker.ask('actor', { id: path }, { node }).then(
      ({ answer }) => actorView({ ...answer, node }, context.machine.now(), screen),
      (error: unknown) => [toFailure(error, node).message],
    );
    change((current) => ({ ...current, open: { path, node, lines } }));
  };
  const press = (key: Key): void => {
    const { model: next, effect } = pressed(model.current, key);
    change(() => next);
    if (effect?.do === 'quit') exit();
    else if (effect?.do === 'resubscribe') void feed.current?.start(next.sort);
    else if (effect?.do === 'open') void open(effect.node, effect.path);
  };
  useInput((input, { return: enter, escape, backspace, delete: del, ctrl }) => {
    const special = { enter, escape, backspace: backspace || del, ctrlC: ctrl && input === 'c' };
    // Fast or pasted input arrives in one piece.
    if (input.length > 1) {
      for (const character of input) press(character === '\r' ? { input: '', enter: true } : { input: character });
    } else press({ input, ...special });
  });

  const lines = topFrame(model.current, context.machine.now(), { ...screen, height: (stdout.rows || 24) - 1 });
  return (
    <Box flexDirection="column">
      {lines.map((line, i) => (
        // Lines have no identity other than their position.
        <Text key={i} wrap="truncate">
          {line === '' ? ' ' : line}
        </Text>
      ))}
    </Box>
  );
}

/** Runs until `q`, Ctrl-C, or the loss of the link, then restores the screen. */
export async function runFullScreen(context: Context, options: TopRunOptions): Promise<ExitCode> {
  const asker = await context.asker();
  const { machine } = context;
  machine.stdout.write(ENTER_SCREEN);
  try {
    const app = render(<Top context={context} asker={asker} options={options} />, {
      stdout: machine.stdout as NodeJS.WriteStream,
      stdin: machine.stdin as NodeJS.ReadStream,
      exitOnCtrlC: false,
      patchConsole: false,
    });
    void machine.interrupted.then(() => app.unmount());
    await app.waitUntilExit();
  } finally {
    machine.stdout.write(LEAVE_SCREEN);
  }
  return EXIT.ok;
}
