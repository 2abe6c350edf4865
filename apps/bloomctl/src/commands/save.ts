import { createWriteStream } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { finished } from 'node:stream/promises';
import type { StreamFields } from '@bloom/inspection';
import type { Context } from '../context.js';
import { EXIT, Failure } from '../exit.js';
import { follow, mustBeComplete } from '../following.js';
import { size } from '../text/units.js';

export interface SavedStream<K extends 'profile' | 'pcap'> {
  readonly kind: K;
  readonly fields: StreamFields<K>;
  readonly node: string | undefined;
  readonly file: string;
  /** Description of the file's content. */
  readonly what: string;
}

/** Saves a file that a node sends in pieces. The file exists only after it is complete. @throws Failure */
export async function saveStream<K extends 'profile' | 'pcap'>(
  context: Context,
  { kind, fields, node, file, what }: SavedStream<K>,
): Promise<void> {
  const part = `${file}.part`;
  const handle = await open(part, 'w', 0o600).catch((error: Error) => {
    throw new Failure(EXIT.usage, `${file} cannot be written: ${error.message}`);
  });
  const sink = createWriteStream(part, { fd: handle });
  let bytes = 0;
  let broken: Error | undefined;
  sink.on('error', (error) => void (broken ??= error));
  try {
    const followed = await follow(context, {
      kind,
      fields,
      nodes: [node],
      onItem: (item) => {
        bytes += item.bytes.byteLength;
        sink.write(item.bytes);
        // Stop the stream when the disk is full.
        return broken === undefined;
      },
      onOpen: ([stream]) => context.output.say(`${stream?.node}: taking ${what} ...`),
    });
    await finished(sink.end()).catch((error: Error) => (broken ??= error));
    if (broken !== undefined) throw new Failure(EXIT.usage, `${file} cannot be written: ${broken.message}`);
    mustBeComplete(followed, what, kind === 'profile');
    await rename(part, file);
  } catch (error) {
    sink.destroy();
    await rm(part, { force: true });
    throw error;
  }
  const { asked } = await context.asker();
  context.output.answer(kind, { asked, file, bytes }, () => [`${file}: ${size(bytes)}`]);
}
