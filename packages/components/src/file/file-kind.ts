import { FileOptions, parseOptions, type ComponentKind } from '@bloom/rooms';
import { type Clock, systemClock } from '@bloom/time';
import { playFile } from './file-player.js';
import { findSource } from './source-path.js';

export interface FileKindOptions {
  /** Root of the playable files. */
  sourcesDirectory: string;
  clock?: Clock;
}

/** Returns the component kind that plays one of the operator's files into the room. */
export function fileKind({ sourcesDirectory, clock = systemClock }: FileKindOptions): ComponentKind {
  return {
    type: 'file',
    limitPerRoom: null,
    prepare: async (given) => {
      const { filePath, framerate = null } = parseOptions(FileOptions, given);
      const source = await findSource(sourcesDirectory, { filePath, framerate });

      return {
        properties: { filePath, framerate: source.framerate },
        subscribeMode: null,
        start: (host) => playFile(host, source, clock),
      };
    },
  };
}
