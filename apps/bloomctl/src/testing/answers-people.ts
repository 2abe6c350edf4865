import type { Mix, Peer, Recording, RecordingList, RoomList } from '../people/answers.js';

const track = (id: string, type: string) => ({ id, type });

/** Answers of the HTTP API. Everybody's client writes names and metadata. */
export const roomList: RoomList & { total: number } = {
  rooms: [
    {
      id: 'kitchen',
      config: { maxPeers: 4 },
      peers: [
        {
          id: '5b1f0a52-7d61-4c0e-9f8e-3d0b6f1c2a77',
          status: 'connected',
          metadata: null,
          tracks: [track('1:mic', 'audio'), track('1:cam', 'video')],
        },
        { id: '9c0d7e4b-1f3a-4f6c-8a55-0e2b4c6d8f10', status: 'disconnected', metadata: null, tracks: [] },
      ],
      components: [
        { id: 'c1', type: 'recording' },
        { id: 'c2', type: 'sip' },
      ],
    },
    {
      id: 'a-room-whose-name-is-longer-than-any-screen-is-wide',
      config: { maxPeers: null },
      peers: [],
      components: [],
    },
  ],
  total: 41,
  unreachable: ['c@sfu-3.internal'],
};

export const peerList: readonly (Peer & { name: string | null })[] = [
  {
    id: '5b1f0a52-7d61-4c0e-9f8e-3d0b6f1c2a77',
    name: 'Ann \u001b[2J',
    status: 'connected',
    metadata: null,
    tracks: [
      { id: '1:mic', type: 'audio', muted: true },
      { id: '1:cam', type: 'video' },
    ],
    permissions: { publish: ['audio', 'video'], subscribe: true, metadata: false },
  },
  {
    id: '9c0d7e4b-1f3a-4f6c-8a55-0e2b4c6d8f10',
    name: null,
    status: 'disconnected',
    metadata: null,
    tracks: [],
    permissions: { publish: false, subscribe: false, metadata: false },
  },
];

export const mix: Mix = {
  state: 'mixing',
  progress: 0.25,
  layout: 'grid',
  width: 1_280,
  height: 720,
  requestedAt: 1_795_957_500_000,
  endedAt: null,
};

const recording: Recording = {
  room: 'kitchen',
  part: 'part_2026-11-29T12-00-00.000Z',
  state: 'uploaded',
  tracks: 4,
  seconds: 3_725,
  bytes: 812_000_000,
  startedAt: 1_795_953_600_000,
  uploadedAt: 1_795_957_400_000,
};

export const recordingList: RecordingList = {
  recordings: [
    { ...recording, state: 'recording', seconds: 12.3, bytes: 1_204_000, uploadedAt: null },
    { ...recording, state: 'uploading', progress: 0.42, uploadedAt: null },
    { ...recording, state: 'failed', reason: 'the bucket archive answers 403 Forbidden', uploadedAt: null },
    { ...recording, mix },
  ],
  unreachable: ['c@sfu-3.internal'],
};
