import {
  type ClientInfo_Capability,
  type DisconnectReason,
  ParticipantInfo,
  ParticipantInfo_Kind,
  type ParticipantInfo_State,
  type TrackInfo,
} from '@livekit/protocol';
import type { ParticipantKind } from '../grants.js';
import type { ParticipantRecord } from '../record.js';

const KIND_OF: Readonly<Record<ParticipantKind, ParticipantInfo_Kind>> = {
  standard: ParticipantInfo_Kind.STANDARD,
  ingress: ParticipantInfo_Kind.INGRESS,
  egress: ParticipantInfo_Kind.EGRESS,
  sip: ParticipantInfo_Kind.SIP,
  agent: ParticipantInfo_Kind.AGENT,
  connector: ParticipantInfo_Kind.CONNECTOR,
  bridge: ParticipantInfo_Kind.BRIDGE,
};

/** Returns what a record says of a participant. */
export function describeRecord(record: ParticipantRecord): ParticipantInfo {
  const { identity, name, kind, metadata, attributes, joinedAt, clientProtocol, capabilities } = record;

  return new ParticipantInfo({
    identity,
    name,
    kind: KIND_OF[kind],
    metadata,
    attributes: { ...attributes },
    joinedAt: BigInt(Math.floor(joinedAt / 1_000)),
    joinedAtMs: BigInt(joinedAt),
    clientProtocol: clientProtocol ?? 0,
    capabilities: (capabilities ?? []) as ClientInfo_Capability[],
  });
}

/** Returns what clients are sent about a participant. */
export function describeParticipant(
  record: ParticipantRecord,
  rest: {
    sid: string;
    state: ParticipantInfo_State;
    version: number;
    tracks: TrackInfo[];
    disconnectReason?: DisconnectReason;
  },
): ParticipantInfo {
  return Object.assign(describeRecord(record), rest, { isPublisher: rest.tracks.length > 0 });
}
