// Renders a terminal as a picture: the browser paints the program's own output.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { repository } from '../harness/processes.js';
import type { Trio } from './trio.js';

const COLOURS: Record<string, string> = { 31: '#ff7b72', 32: '#7ee787', 33: '#e3b341', 36: '#79c0ff' };

function toHtml(text: string): string {
  let style = { colour: '', bold: false, dim: false };
  return (
    text
      .replaceAll('&', '&amp;')
      .replaceAll('<', '&lt;')
      // oxlint-disable-next-line no-control-regex
      .split(/(\u001b\[\d+m)/)
      .map((part) => {
        // oxlint-disable-next-line no-control-regex
        const code = /^\u001b\[(\d+)m$/.exec(part)?.[1];
        if (code === undefined) {
          const { colour, bold, dim } = style;
          return `<span style="${colour === '' ? '' : `color:${colour};`}${bold ? 'font-weight:bold;' : ''}${dim ? 'opacity:.6;' : ''}">${part}</span>`;
        }
        if (code === '1') style = { ...style, bold: true };
        else if (code === '2') style = { ...style, dim: true };
        else if (code === '22') style = { ...style, bold: false, dim: false };
        else if (code === '39') style = { ...style, colour: '' };
        else style = { ...style, colour: COLOURS[code] ?? '' };
        return '';
      })
      .join('')
  );
}

export async function paint(browser: Browser, text: string, file: string): Promise<void> {
  const page = await browser.newPage({ deviceScaleFactor: 2 });
  await page.setContent(
    `<body style="margin:0;background:#0d1117"><pre style="display:inline-block;margin:0;padding:18px 22px;color:#e6edf3;background:#0d1117;font:14px/1.45 'DejaVu Sans Mono','Liberation Mono',monospace">${toHtml(text)}</pre></body>`,
  );
  await page.locator('pre').screenshot({ path: join(repository, file) });
  await page.close();
}

const LEAVES_SCREEN = '\u001b[?1049l';

/** `bloomctl top` in a terminal of 100 columns and 24 lines, provided by util-linux's `script`. */
export class FullScreen {
  #seen = '';
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #ended: Promise<unknown[]>;

  constructor(trio: Trio, args: readonly string[]) {
    const program = join(repository, 'apps', 'bloomctl', 'bin', 'bloomctl.js');
    const command = `stty cols 100 rows 24; exec ${process.execPath} ${program} ${args.join(' ')}`;
    this.#child = spawn('script', ['-qfec', command, '/dev/null'], {
      cwd: trio.folder,
      env: {
        PATH: process.env['PATH'] ?? '',
        HOME: trio.folder,
        TERM: 'xterm-256color',
        ERL_EPMD_PORT: String(trio.mapperPort),
        BLOOM_NODE: trio.name('a'),
      },
    });
    this.#child.stdout.on('data', (data: Buffer) => (this.#seen += data.toString()));
    this.#ended = once(this.#child, 'close');
  }

  press(keys: string): void {
    this.#child.stdin.write(keys);
  }

  /** Returns the current screen with its colours. */
  get screen(): string {
    // Each repaint is enclosed in marks of a synchronized update.
    const last = this.#seen.split('\u001b[?2026h').findLast((frame) => frame.includes('bloomctl top')) ?? '';
    const [body = ''] = last.slice(last.indexOf('\u001b[1mbloomctl top')).split('\u001b[?2026l');
    return (
      body
        .replaceAll('\r', '')
        // oxlint-disable-next-line no-control-regex
        .replaceAll(/\u001b\[[?\d;]*[A-HJKlh]/g, '')
        .trimEnd()
    );
  }

  /** True once the previous screen is restored. */
  get isLeft(): boolean {
    return this.#seen.includes(LEAVES_SCREEN);
  }

  /** Resolves with the program's exit code. */
  async end(): Promise<number | null> {
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), 10_000);
    const [code] = await this.#ended;
    clearTimeout(timer);
    return code as number | null;
  }
}
