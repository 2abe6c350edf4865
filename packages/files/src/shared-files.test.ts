import { describe, expect, test } from '@jest/globals';
import { BytesFile, type ServedFile } from './served-file.js';
import { SharedFiles } from './shared-files.js';

/** A file too large to keep, and a record of its closing. */
function largeFile() {
  const closed: string[] = [];
  const file: ServedFile = new BytesFile('film.mp4', Buffer.alloc(5 * 1024 * 1024));
  file.close = async () => void closed.push('film.mp4');

  return { file, closed };
}

describe('a file too large to keep, awaited by two requests', () => {
  /** Returns the requests, their pending results, and one entry for each time the file was opened. */
  function setUp() {
    const shared = new SharedFiles({});
    const opened: ((file: ServedFile) => void)[] = [];
    const open = (): Promise<ServedFile> => new Promise((resolve) => opened.push(resolve));
    const signals = [new AbortController(), new AbortController()] as const;
    const [first, second] = signals.map(({ signal }) =>
      shared.get({ key: 'film', name: 'film.mp4', keepMs: 0, signal }, open).catch(() => 'failed'),
    );
    return { opened, signals, first, second };
  }

  test('passes the file to the request still waiting', async () => {
    const { opened, signals, second } = setUp();
    signals[0].abort();
    const { file, closed } = largeFile();
    opened[0]?.(file);
    // The request that left opens its own file, which the nodes refuse.
    expect(await second).toBe(file);
    expect(closed).toEqual([]);
  });

  test('closes a file when both requests have left', async () => {
    const { opened, signals, first, second } = setUp();
    for (const each of signals) each.abort();
    const { file, closed } = largeFile();
    opened[0]?.(file);
    expect(await Promise.all([first, second])).toEqual(['failed', 'failed']);
    expect(closed).toEqual(['film.mp4']);
    expect(opened).toHaveLength(1);
  });
});
