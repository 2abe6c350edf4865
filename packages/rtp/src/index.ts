export { RtpError } from './errors.js';
export { isRtcp, rtpHeaderLength, RtpView } from './rtp-view.js';
export { OutboundHeader, type OutboundHeaderOptions, writePadding } from './outbound-header.js';
export { SequenceUnwrapper, sequenceDelta, TimestampUnwrapper, timestampDelta } from './unwrap.js';
export { ForwardMapper, type ForwardMapperOptions } from './forward-mapper.js';
export { SendHistory } from './send-history.js';
export { PacketStore, type PacketStoreOptions } from './packet-store.js';
export { LossTracker, type LossTrackerOptions } from './loss-tracker.js';
export { RTX_PREFIX, restoreRtx, writeRtxPrefix } from './rtx.js';
export { isVp8KeyFrame, VP8_DESCRIPTOR_MAX, Vp8Descriptor, Vp8Mapper, writeVp8Descriptor } from './codecs/vp8.js';
export { hasH264ParameterSet, isH264KeyFrame } from './codecs/h264.js';
export { VoiceActivity, type VoiceActivityOptions, type VoiceStatus } from './voice-activity.js';
export {
  emptyReportBlock,
  emptySenderInfo,
  PayloadFeedback,
  RtcpReader,
  RtcpType,
  RtpFeedback,
  type ReportBlock,
  type SenderInfo,
} from './rtcp/reader.js';
export { RtcpWriter } from './rtcp/writer.js';
export { ReceiveStatistics } from './rtcp/receive-stats.js';
export { ntpMiddle, RoundTripClock, SenderClock, toNtp } from './rtcp/sender-clock.js';
export { TransportCcFeedback, TransportCcRecorder } from './rtcp/transport-cc.js';
export * from './frames/index.js';
