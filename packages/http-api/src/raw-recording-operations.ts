import type { RawMix, RawMixOrder, RawQuery, RawRecording, RawRecordingStore } from '@bloom/files';
import { queried } from './cluster-operations.js';
import { checked, type Operation, param } from './operation.js';
import type { RawRecordingId } from './raw-recording-routes.js';
import { MixRequest, RawListQuery } from './schemas/raw-recording.js';

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

    mix_raw_recording: async ({ params, body }) => {
      const place = { roomId: param(params, 'room_id'), part: param(params, 'part') };
      const mix = await recordings.mix(place, orderOf(body));

      return { status: 202, json: { data: shownMix(mix) } };
    },

    delete_raw_recording_mix: async ({ params }) => {
      await recordings.removeMix({ roomId: param(params, 'room_id'), part: param(params, 'part') });

      return { status: 204 };
    },
  };
}

function orderOf(body: Readonly<Record<string, unknown>>): RawMixOrder {
  const { layout, width, height, skipMissing, credentials } = checked(MixRequest, body);
  const { endpoint, ...keys } = credentials ?? {};
  const order = {
    layout,
    width,
    height,
    skipMissing,
    credentials: credentials && { ...keys, ...present({ endpoint }) },
  };

  return present(order) as RawMixOrder;
}

/** Leaves out null, which counts as missing. */
function present(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));
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

function shownRecording({ roomId, part, state, reason, progress, ...more }: RawRecording): object {
  const { tracks, seconds, bytes, startedAt, uploadedAt, mix } = more;

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
    ...(mix === undefined ? {} : { mix: shownMix(mix) }),
  };
}

function shownMix({ requestedAt, endedAt, ...mix }: RawMix): object {
  return { ...mix, requested_at: requestedAt, ended_at: endedAt };
}
