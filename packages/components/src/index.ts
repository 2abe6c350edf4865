export { type Clock, systemClock } from './clock.js';
export { ComponentError, type ComponentErrorCode } from './errors.js';
export { fileKind, type FileKindOptions } from './file/file-kind.js';
export { HlsError, type HlsErrorCode } from './hls/errors.js';
export { type MixedRecording, mixRecording, type MixRecordingOptions } from './mix/mix-recording.js';
export { HlsService, type HlsServiceOptions, type LocateRequest, type Located } from './hls/hls-service.js';
export type { S3Credentials } from './recording/object-store.js';
export type { RecordedPart } from './recording/recorder.js';
export { RecordingService, type RecordingServiceOptions } from './recording/recording-service.js';
