export { rtpHeaderLength, RtpView } from './rtp-view.js';
export { OutboundHeader } from './outbound-header.js';
export { SequenceUnwrapper, sequenceDelta, TimestampUnwrapper, timestampDelta } from './unwrap.js';
export { ForwardMapper } from './forward-mapper.js';
export { SendHistory } from './send-history.js';
export { PacketStore } from './packet-store.js';
export { InsertedPackets } from './inserted-packets.js';
export { LossTracker } from './loss-tracker.js';
export { restoreRtx, writeRtxPrefix } from './rtx.js';
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
export { findStartCode, splitAnnexB, toAnnexB } from './payload-formats/annex-b.js';
export { NalType, nalType } from './payload-formats/h264.js';
export { DependencyDescriptors, DESCRIPTOR_URI } from './payload-formats/dependency-descriptor.js';
export { opusSamples } from './payload-formats/opus.js';
export { superframe } from './payload-formats/vp9-assembler.js';
export { RedReader, RedWriter } from './payload-formats/red.js';
export {
  type AnnouncedParts,
  EntryPoint,
  formatParameters,
  type FrameAssembler,
  type PayloadFormat,
  type PayloadNumbering,
  type PayloadReader,
} from './payload-formats/payload-format.js';
export {
  acceptedCodecs,
  CODEC_NAMES,
  type CodecName,
  commonCodecs,
  isCodecName,
  payloadFormat,
} from './payload-formats/payload-formats.js';
export { type OrderedPacket, PART_BYTES, ReorderBuffer } from './reorder-buffer.js';
