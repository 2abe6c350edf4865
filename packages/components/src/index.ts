export { nativeInstalled } from './av/native.js';
export { ComponentError, type ComponentErrorCode } from './errors.js';
export { fileKind, type FileKindOptions } from './file/file-kind.js';
export { HlsError, type HlsErrorCode } from './hls/errors.js';
export { type MixedRecording, mixRecording, type MixRecordingOptions } from './mix/mix-recording.js';
export {
  type FetchStreamFile,
  HlsService,
  type HlsServiceOptions,
  type LocateRequest,
  type Located,
} from './hls/hls-service.js';
export { makeFolder } from './make-folder.js';
export type { S3Credentials } from './s3/object-store.js';
export { PART_NAME } from './recording/parts.js';
export type { RecordedPart } from './recording/recorder.js';
export { RecordingService, type RecordingServiceOptions } from './recording/recording-service.js';
export { rtspKind, type RtspKindOptions } from './rtsp/rtsp-kind.js';
export type { EndedCall, SipInspection } from './sip/sip-component.js';
export { SipService, type SipServiceOptions } from './sip/sip-service.js';
