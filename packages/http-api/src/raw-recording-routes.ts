import { MAX_RAW_LISTED } from '@bloom/files';
import { z } from 'zod';
import { badRequest, notFound, type RouteOf } from './route.js';
import { ErrorBody } from './schemas/common.js';
import { MixCreated, MixRequest, RawRecordingListing } from './schemas/raw-recording.js';

export type RawRecordingId =
  | 'get_raw_recordings'
  | 'get_raw_recording_content'
  | 'delete_raw_recording'
  | 'mix_raw_recording'
  | 'delete_raw_recording_mix';

const text = (description: string) => z.string().meta({ description });
const silent = { 503: { description: 'A node that may have it does not answer', body: ErrorBody } };
const file = (description: string) => ({ description, body: 'file' }) as const;

/** The routes of recordings of tracks. */
export const RAW_RECORDING_ROUTES: readonly RouteOf<RawRecordingId>[] = [
  {
    id: 'get_raw_recordings',
    method: 'get',
    path: '/raw_recording',
    auth: 'token',
    tag: 'recording',
    summary: 'Lists recordings of tracks, newest first, with what has become of them',
    query: {
      scope: text('`cluster` for those of every node; otherwise those of this node'),
      room: text('Only recordings of this room'),
      limit: z.int().min(1).max(MAX_RAW_LISTED).meta({ description: 'Most recordings; default 100' }),
      after: z.string().meta({ description: '`next` of the list before', pattern: '^[^/]+/[^/]+$' }),
    },
    answers: { 200: { description: 'Recordings', body: RawRecordingListing }, ...badRequest },
  },
  {
    id: 'get_raw_recording_content',
    method: 'get',
    path: '/raw_recording/:room_id/:part/:filename',
    auth: 'token',
    tag: 'recording',
    summary: 'A file of a recording of tracks that is no longer being recorded',
    answers: {
      200: file('The file'),
      206: file('The range asked for'),
      416: { description: 'The range lies outside the file', body: 'empty' },
      ...badRequest,
      ...notFound,
      ...silent,
    },
  },
  {
    id: 'delete_raw_recording',
    method: 'delete',
    path: '/raw_recording/:room_id/:part',
    auth: 'token',
    tag: 'recording',
    summary: 'Removes a recording of tracks from every node, and ends its upload; objects of a complete upload stay',
    answers: { 204: { description: 'Done', body: 'empty' }, ...badRequest, ...notFound, ...silent },
  },
  {
    id: 'mix_raw_recording',
    method: 'post',
    path: '/raw_recording/:room_id/:part/mix',
    auth: 'token',
    tag: 'recording',
    summary: 'Mixes a recording of tracks into one movie, `mix.mp4`, beside the tracks; its state is in the list',
    body: MixRequest,
    answers: {
      202: { description: 'The mix waits for its turn: a node makes one at a time', body: MixCreated },
      ...badRequest,
      ...notFound,
      409: { description: 'It is not complete yet, or already being mixed', body: ErrorBody },
      503: {
        description: 'Too many mixes wait, the node cannot mix, or one that may have it is silent',
        body: ErrorBody,
      },
    },
  },
  {
    id: 'delete_raw_recording_mix',
    method: 'delete',
    path: '/raw_recording/:room_id/:part/mix',
    auth: 'token',
    tag: 'recording',
    summary: 'Ends the mix of a recording of tracks, or removes the movie from the nodes; an uploaded one stays',
    answers: { 204: { description: 'Done', body: 'empty' }, ...badRequest, ...notFound, ...silent },
  },
];
