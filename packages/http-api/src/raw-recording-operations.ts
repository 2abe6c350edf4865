import type { RawQuery, RawRecording, RawRecordingStore } from '@bloom/files';
import { queried } from './cluster-operations.js';
import { type Operation, param } from './operation.js';
import type { RawRecordingId } from './raw-recording-routes.js';
import { RawListQuery } from './schemas/raw-recording.js';

/** Returns the operations of the recordings of tracks. */
export function rawRecordingOperations(recordings: RawRecordingStore): Record<RawRecordingId, Operation> {
  return {
    get_raw_recordings: async ({ query }) => {
      const scope = query.get('scope') === 'cluster' ? 'cluster' : 'local';
      const { recordings: found, isWhole, unreachable } = await recordings.list(scope, queryOf(query));
      const last = found.at(-1);

      return {
        status: 200,
        json: {
          data: found.map(shownRecording),
          ...(isWhole || last === undefined ? {} : { next: `${last.roomId}/${last.part}` }),
          ...(scope === 'cluster' ? { unreachable } : {}),
        },
      };
    },

    get_raw_recording_content: async ({ params, signal }) => {
      const place = { roomId: param(params, 'room_id'), part: param(params, 'part') };

      return { status: 200, file: await recordings.open({ ...place, fileName: param(params, 'filename') }, signal) };
    },

    delete_raw_recording: async ({ params }) => {
      await recordings.remove({ roomId: param(params, 'room_id'), part: param(params, 'part') });

      return { status: 204 };
    },
  };
}

function queryOf(given: URLSearchParams): RawQuery {
  const { limit, room, after } = queried(RawListQuery, given);
  const [roomId = '', part = ''] = (after ?? '').split('/');

  return {
    limit,
    ...(room === null ? {} : { roomId: room }),
    ...(after === null ? {} : { after: { roomId, part } }),
  };
}

function shownRecording({ roomId, part, state, reason, progress, ...sizes }: RawRecording): object {
  const { tracks, seconds, bytes, startedAt, uploadedAt } = sizes;

  return {
    room: roomId,
    part,
    state,
    ...(reason === undefined ? {} : { reason }),
    ...(progress === undefined ? {} : { progress }),
    tracks,
    seconds,
    bytes,
    started_at: startedAt,
    uploaded_at: uploadedAt,
  };
}
