import type { Screen } from './text/style.js';
import { paint, wrap } from './text/style.js';
import type { OutStream, Machine } from './machine.js';

export type Format = 'text' | 'json' | 'jsonl';

/** Version of all documents. It increases when a field is removed or changes its meaning, not for new fields. */
export const DOCUMENT_VERSION = 1;

export interface OutputOptions {
  readonly json?: boolean | undefined;
  readonly jsonl?: boolean | undefined;
  /** false: `--no-color`. */
  readonly color?: boolean | undefined;
  readonly width?: number | undefined;
}

/** Writes data to stdout and messages to stderr. */
export class Output {
  readonly format: Format;
  /** Screen for the text on stdout. */
  readonly screen: Screen;
  readonly #out: OutStream;
  readonly #err: OutStream;
  readonly #errScreen: Screen;

  constructor(machine: Pick<Machine, 'stdout' | 'stderr' | 'env'>, options: OutputOptions) {
    this.#out = machine.stdout;
    this.#err = machine.stderr;
    this.format = options.jsonl === true ? 'jsonl' : options.json === true ? 'json' : 'text';
    this.screen = screenOf(machine.stdout, machine.env, options);
    this.#errScreen = screenOf(machine.stderr, machine.env, options);
  }

  /** Prints an answer: as a document, or as the lines of its view. */
  answer(kind: string, fields: object, view: (screen: Screen) => readonly string[]): void {
    if (this.format === 'text') this.lines(view(this.screen));
    else this.#out.write(`${plainJson({ kind, v: DOCUMENT_VERSION, ...fields })}\n`);
  }

  lines(lines: readonly string[]): void {
    if (lines.length > 0) this.#out.write(`${lines.join('\n')}\n`);
  }

  /** Prints a message about the data to stderr, out of the way of pipes. */
  say(text: string): void {
    this.#err.write(`${wrap(text, this.#errScreen).join('\n')}\n`);
  }

  complain(message: string, advice?: string): void {
    this.say(`${paint(this.#errScreen, 'red', 'bloomctl:')} ${message}`);
    if (advice !== undefined) this.say(`  ${advice}`);
  }
}

/** Returns JSON without characters that terminals interpret. */
function plainJson(document: object): string {
  return JSON.stringify(document).replaceAll(
    /[\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** Returns the colour and width of a stream: only terminals get colour, unless NO_COLOR is set, and have lines cut. */
export function screenOf(stream: OutStream, env: Machine['env'], options: OutputOptions): Screen {
  const noColour = env['NO_COLOR'] !== undefined && env['NO_COLOR'] !== '';
  const isTerminal = stream.isTTY === true && env['TERM'] !== 'dumb';
  const columns = Number(env['COLUMNS']);
  // A terminal without a size, such as `docker exec -t` in a script, reports 0.
  const width = options.width ?? (stream.isTTY === true ? stream.columns || 80 : columns >= 20 ? columns : Infinity);
  return { colour: options.color ?? (isTerminal && !noColour), width };
}
