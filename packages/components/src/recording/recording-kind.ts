import {
  COMPONENT_SCHEMAS,
  parseOptions,
  RoomError,
  type Component,
  type ComponentHost,
  type ComponentKind,
} from '@bloom/rooms';
import { anyCodecProperty, videoCodecsOf } from '../any-codec.js';
import type { S3Target } from '../s3/object-store.js';
import { prefixOf, targetOf, type UploadDefaults } from './upload-target.js';

export interface RecordingKindOptions extends UploadDefaults {
  /** Starts recording. The files go to `target` below `prefix`, which has no leading or trailing slashes. */
  record(host: ComponentHost, to: RecordingOptions): Component;
}

export interface RecordingOptions {
  target: S3Target;
  /** Without leading or trailing slashes. */
  prefix: string;
  /** The credentials came with the request, so they end with this process. */
  byRequest: boolean;
  audioOnly: boolean;
  /** Record VP8 and VP9 beside H.264. */
  anyCodec: boolean;
  /** Send news of the upload. */
  notify: boolean;
}

/** Returns the component kind that records a room's tracks into files and uploads them. */
export function recordingKind(options: RecordingKindOptions): ComponentKind {
  const { record } = options;

  return {
    type: 'recording',
    videoCodecs: videoCodecsOf,
    limitPerRoom: 1,
    prepare: async (given) => {
      const asked = parseOptions(COMPONENT_SCHEMAS.recording.options, given);
      const own = asked.credentials ?? null;
      const target = targetOf(options, own);
      if (target === null) {
        throw new RoomError(
          'INVALID_OPTIONS',
          'S3 credentials has to be passed either by request or at application startup as envs',
        );
      }
      const prefix = prefixOf(options.pathPrefix, asked.pathPrefix ?? null);
      const subscribeMode = asked.subscribeMode ?? 'auto';
      const audioOnly = asked.audioOnly ?? false;

      return {
        properties: { subscribeMode, ...(audioOnly ? { audioOnly } : {}), ...anyCodecProperty(asked) },
        subscribeMode,
        start: (host) =>
          record(host, {
            target,
            prefix,
            byRequest: own !== null,
            audioOnly,
            anyCodec: asked.anyCodec ?? false,
            notify: asked.notify ?? false,
          }),
      };
    },
  };
}
