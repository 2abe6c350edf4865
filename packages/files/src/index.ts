export { clusterFiles, type ClusterFilesOptions, offerFiles, type OwnFiles } from './cluster-files.js';
export { MediaFileError, type MediaFileErrorCode } from './errors.js';
export { LocalRecordings, type LocalRecordingsOptions } from './local-recordings.js';
export {
  aloneRaw,
  MAX_RAW_LISTED,
  MIX_LAYOUTS,
  MIX_STATES,
  RAW_STATES,
  type OwnRawRecordings,
  type RawMix,
  type RawMixOrder,
  type RawQuery,
  type RawRecording,
  type RawRecordingStore,
} from './raw-recordings.js';
export {
  BytesFile,
  isDirectoryItself,
  leavesDirectory,
  openServedFile,
  type ByteRange,
  type ServedFile,
} from './served-file.js';
export type { BlockingPosition, LiveStreams, RecordingStore, StreamRequest, TakenFiles } from './stores.js';
