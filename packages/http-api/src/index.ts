export { createHttpApi, type Fallback, type HttpApi, type HttpApiOptions } from './app.js';
export { HttpError, MediaFileError, type MediaFileErrorCode } from './errors.js';
export {
  HttpListenError,
  startHttpListener,
  type HttpListener,
  type HttpListenerOptions,
  type UpgradeHandler,
} from './listener.js';
export { noLiveStreams, type BlockingPosition, type LiveStreams, type StreamRequest } from './live-streams.js';
export { clusterFiles, type ClusterFilesOptions } from './cluster-files/cluster-files.js';
export { BytesFile, openServedFile, type ByteRange, type ServedFile } from './media-files.js';
export { createOpenApiDocument, type OpenApiDocument, type OpenApiOptions } from './openapi.js';
export { LocalRecordings, type LocalRecordingsOptions, type RecordingStore } from './recordings.js';
export type { HealthReport } from './schemas/service.js';
export type { OnStep, RequestStep } from './steps.js';
