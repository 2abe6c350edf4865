import type { OperationId } from './routes.js';

const S3 = { accessKeyId: 'AKIA...', secretAccessKey: '...', region: 'eu-central-1', bucket: 'recordings' };

/** Sample JSON bodies for `/docs`, by purpose. Every operation with a body has one. */
export const BODY_EXAMPLES: { readonly [K in OperationId]?: Readonly<Record<string, unknown>> } = {
  create_room: {
    'with an id of your own': { roomId: 'standup', maxPeers: 8, peerlessPurgeTimeout: 600 },
    'for streams and recordings': { roomId: 'webinar', videoCodec: 'h264' },
    'with a webhook': { webhookUrl: 'https://backend.example.com/webhook' },
    'with a chat that the backend hears': { dataEvents: ['chat'] },
  },
  update_room: {
    'a title': { metadata: { title: 'Daily standup' } },
    limits: { maxPeers: 20, peerlessPurgeTimeout: null },
  },
  send_message: {
    'to everybody': { topic: 'announcement', data: { text: 'We end in five minutes' } },
    'to one peer': { topic: 'hint', data: 'You are muted', to: ['4a1c1164-5fb7-425d-89d7-24cdb8fff1cf'] },
  },
  add_peer: {
    'a participant': { type: 'webrtc', options: { metadata: { name: 'Ann' } } },
    'a viewer for one hour': { type: 'webrtc', options: { permissions: { publish: false }, ttl: 3600 } },
  },
  create_invitation: { 'for three listeners': { uses: 3, permissions: { publish: ['audio'] } } },
  accept_invitation: { 'a guest': { token: 'eyJpZCI6...', name: 'Bob' } },
  create_viewer: { 'for one hour': { ttl: 3600 } },
  update_component: { pause: { paused: true }, resume: { paused: false } },
  update_peer: {
    'may only speak': { permissions: { publish: ['audio'] } },
    'has another name': { metadata: { name: 'Ann', role: 'chair' } },
  },
  delete_peer: { 'with a reason': { reason: 'The meeting has ended' } },
  update_track: { mute: { muted: true }, unmute: { muted: false } },
  add_component: {
    'a stream': { type: 'hls', options: { lowLatency: true } },
    'a stream that is kept': { type: 'hls', options: { persistent: true } },
    'a recording': { type: 'recording', options: { credentials: S3, pathPrefix: 'calls' } },
    'a file': { type: 'file', options: { filePath: 'welcome.ogg' } },
    'a camera': { type: 'rtsp', options: { sourceUri: 'rtsp://user:password@camera.example.com/stream' } },
    'a phone': {
      type: 'sip',
      options: { registrarCredentials: { address: 'registrar.example.com', username: 'bloom', password: '...' } },
    },
  },
  subscribe_to: { 'one peer': { origins: ['4a1c1164-5fb7-425d-89d7-24cdb8fff1cf'] } },
  dial: { 'a number': { phoneNumber: '+48 123 456 789' } },
  mix_raw_recording: { 'whoever speaks is large': { layout: 'speaker', width: 1920, height: 1080 }, 'a grid': {} },
  move_room: { 'to a node': { node: 'bloom@10.0.0.2' }, 'to the least loaded one': {} },
  drain_node: {
    'for five minutes': { deadline: 300 },
    'without a limit': {},
    'moving its rooms': { move: true, moveTimeout: 60 },
  },
};
