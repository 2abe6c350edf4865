export { rtpHeaderLength, RtpView } from './rtp-view.js';
export { OutboundHeader } from './outbound-header.js';
export { SequenceUnwrapper, sequenceDelta, TimestampUnwrapper, timestampDelta } from './unwrap.js';
export { ForwardMapper } from './forward-mapper.js';
export { SendHistory } from './send-history.js';
export { PacketStore } from './packet-store.js';
export { LossTracker } from './loss-tracker.js';
export { restoreRtx, writeRtxPrefix } from './rtx.js';
export { Vp8Descriptor, Vp8Mapper, writeVp8Descriptor } from './codecs/vp8.js';
export { hasH264ParameterSet, isH264KeyFrame } from './codecs/h264.js';
export { VoiceActivity } from './voice-activity.js';
export {
  emptyReportBlock,
  emptySenderInfo,
  RtcpReader,
  RtcpType,
  type ReportBlock,
  type SenderInfo,
} from './rtcp/reader.js';
export { RtcpWriter } from './rtcp/writer.js';
export { ReceiveStatistics } from './rtcp/receive-stats.js';
export { RoundTripClock, SenderClock, toNtp } from './rtcp/sender-clock.js';
export { TransportCcFeedback, TransportCcRecorder } from './rtcp/transport-cc.js';
export { PART_BYTES } from './frames/completed.js';
export { findStartCode, splitAnnexB } from './frames/annex-b.js';
export { H264Depacketiser, NalType, nalType, packetiseH264, toAnnexB } from './frames/h264.js';
export { opusSamples } from './frames/opus.js';
export { type OrderedPacket, ReorderBuffer } from './frames/reorder-buffer.js';
export { Vp8Depacketiser } from './frames/vp8.js';
