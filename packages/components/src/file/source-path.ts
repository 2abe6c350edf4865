import { constants } from 'node:fs';
import { access, realpath, stat } from 'node:fs/promises';
import { extname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { RoomError } from '@bloom/rooms';

export interface FileSource {
  /** Real path, with symbolic links resolved. */
  path: string;
  kind: 'audio' | 'video';
  /** The value shown by the API. */
  framerate: number | null;
}

const DEFAULT_FRAMERATE = 30;

/**
 * Finds a file to play. The order of the checks is part of the API (docs/reference/http-api.md, "File"). Nothing
 * outside the sources directory is examined, not even through a symbolic link.
 * @throws RoomError `INVALID_OPTIONS`, `FILE_NOT_FOUND`
 */
export async function findSource(
  sourcesDirectory: string,
  { filePath, framerate }: { filePath: string; framerate: number | null },
): Promise<FileSource> {
  const root = resolve(sourcesDirectory);
  const wanted = join(root, filePath);
  if (filePath.includes('\0') || !isStrictlyInside(root, wanted)) throw invalid('Invalid file path');

  const path = await realpath(wanted).catch(() => undefined);
  if (path === undefined) throw notFound();
  const realRoot = await realpath(root);
  if (!isStrictlyInside(realRoot, path)) throw invalid('Invalid file path');
  const found = await stat(path).catch(() => undefined);
  const readable = await access(path, constants.R_OK).then(
    () => true,
    () => false,
  );
  if (found === undefined || !readable) throw notFound();

  if (framerate !== null && framerate <= 0) throw invalid('Invalid framerate passed');
  const extension = found.isFile() ? extname(wanted) : '';
  if (extension === '.h264') return { path, kind: 'video', framerate: framerate ?? DEFAULT_FRAMERATE };
  if (extension !== '.ogg') throw invalid('Unsupported file type');
  if (framerate !== null) {
    throw invalid('Attempted to set framerate for audio component which is not supported.');
  }
  return { path, kind: 'audio', framerate: null };
}

function isStrictlyInside(directory: string, path: string): boolean {
  const way = relative(directory, path);

  return way !== '' && way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

function invalid(message: string): RoomError {
  return new RoomError('INVALID_OPTIONS', message);
}

function notFound(): RoomError {
  return new RoomError('FILE_NOT_FOUND', 'File not found');
}
