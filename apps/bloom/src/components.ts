import { fileKind, RecordingService } from '@bloom/components';
import type { Settings } from '@bloom/config';
import type { Log } from '@bloom/log';
import type { ComponentKind } from '@bloom/rooms';
import { join } from 'node:path';

/** Where recordings are written, and where they go from there. */
export function openRecordings({ resourcesPath, recording }: Settings, log: Log): RecordingService {
  return new RecordingService({
    directory: join(resourcesPath, 'raw_recordings'),
    s3: recording.s3,
    pathPrefix: recording.s3PathPrefix,
    endpoint: recording.s3Endpoint,
    log,
  });
}

/** The kinds of components that the configuration enables. */
export function builtInKinds({ resourcesPath, recording }: Settings, recordings: RecordingService): ComponentKind[] {
  const file = fileKind({ sourcesDirectory: join(resourcesPath, 'file_component_sources') });

  return recording.enabled ? [file, recordings.kind] : [file];
}
