// The options of each kind of component (docs/reference/http-api.md#components).
import type { ComponentType } from '@bloom/server-sdk';
import type { Field } from '../../ui/fields.js';

const MODE: Field = {
  name: 'subscribeMode',
  label: 'Subscribe',
  options: ['auto', 'manual'],
  hint: 'auto: to everything in the room',
};

/** Without it, streams and recordings need a room with the video codec h264. */
const ANY_CODEC: Field = {
  name: 'anyCodec',
  label: 'Take any codec',
  kind: 'boolean',
  initial: 'true',
  hint: 'VP8 and VP9 beside H.264, as in rooms without a video codec',
};

/** Object storage fields below `at`. */
const storage = (at: string): readonly Field[] => [
  { name: `${at}.bucket`, label: 'S3 bucket', hint: 'All four, or none for the storage of the server' },
  { name: `${at}.region`, label: 'S3 region' },
  { name: `${at}.accessKeyId`, label: 'S3 access key id' },
  { name: `${at}.secretAccessKey`, label: 'S3 secret access key', kind: 'password' },
];

/** How the dashboard starts a component. */
interface ComponentForm {
  /** True for kinds that only run in rooms with the video codec h264. */
  readonly h264: boolean;
  /** Other requirements on the server. */
  readonly note?: string;
  readonly fields: readonly Field[];
}

export type StartableType = keyof typeof FORMS;

const FORMS = {
  hls: {
    h264: false,
    fields: [
      { name: 'lowLatency', label: 'Low latency', kind: 'boolean', initial: 'true' },
      { name: 'persistent', label: 'Keep as a recording', kind: 'boolean' },
      {
        name: 'targetWindowDuration',
        label: 'Seconds in the playlist',
        kind: 'number',
        min: 1,
        hint: 'Empty: everything',
      },
      ANY_CODEC,
      MODE,
      ...storage('s3'),
    ],
  },
  recording: {
    h264: false,
    note: 'Needs object storage: of the server (JF_S3_*), or entered here.',
    fields: [{ name: 'pathPrefix', label: 'Path prefix' }, ANY_CODEC, MODE, ...storage('credentials')],
  },
  rtsp: {
    h264: true,
    fields: [
      {
        name: 'sourceUri',
        label: 'Address',
        required: true,
        pattern: '(rtsps?|srt|rtmps?)://.+',
        hint: 'rtsp://, rtsps://, srt://, rtmp:// or rtmps://',
      },
      { name: 'rtpPort', label: 'RTP port', kind: 'number', min: 1, max: 65_535 },
      { name: 'reconnectDelay', label: 'Reconnect after (ms)', kind: 'number' },
      { name: 'keepAliveInterval', label: 'Keep alive every (ms)', kind: 'number' },
    ],
  },
  file: {
    h264: false,
    fields: [
      {
        name: 'filePath',
        label: 'Path',
        required: true,
        pattern: '.+\\.(h264|ogg)',
        hint: 'Below file_component_sources of the server; .h264 or .ogg',
      },
      { name: 'framerate', label: 'Frames per second', kind: 'number', min: 1, hint: 'Video only; default 30' },
    ],
  },
  sip: {
    h264: false,
    note: 'Needs JF_SIP_USED=true and JF_SIP_IP on the server.',
    fields: [
      { name: 'registrarCredentials.address', label: 'Provider', required: true },
      { name: 'registrarCredentials.username', label: 'User name', required: true },
      { name: 'registrarCredentials.password', label: 'Password', required: true, kind: 'password' },
    ],
  },
} satisfies Partial<Record<ComponentType, ComponentForm>>;

/** The kinds that the dashboard can start. */
export const COMPONENT_FORMS: Readonly<Record<StartableType, ComponentForm>> = FORMS;
