import type { RoomView } from '@bloom/rooms';
import type { InboundTrackStats, OutboundTrackStats, RoomMediaStats, StreamStats, TransportStats } from '@bloom/sfu';
import type { AnswerOf } from '../protocol/types.js';

type Inbound = AnswerOf<'peer'>['inbound'][number];
type Outbound = AnswerOf<'peer'>['outbound'][number];

export interface PeerRatesOptions {
  view: RoomView;
  peer: string;
  /** Two samples of the room's media, `ms` apart; undefined without an answer. */
  before: RoomMediaStats | undefined;
  after: RoomMediaStats | undefined;
  ms: number;
}

export interface PeerRates {
  sampledMs: number;
  usedBps: number;
  inbound: Inbound[];
  outbound: Outbound[];
}

/** Returns what a peer sends and receives per second, computed from two samples. */
export function peerRates({ view, peer, before, after, ms }: PeerRatesOptions): PeerRates {
  const now = transportOf(after, peer);
  const then = transportOf(before, peer);
  const perS = (later: number, earlier: number | undefined): number =>
    Math.max(0, Math.round(((later - (earlier ?? 0)) * 1_000_000) / ms) / 1_000);
  const rates = (stream: StreamStats, earlier: StreamStats | undefined) => ({
    bps: Math.round(8 * perS(stream.bytes, earlier?.bytes)),
    packetsPerS: perS(stream.packets, earlier?.packets),
    loss: lossOf(stream, earlier),
    nackPerS: perS(stream.nacks, earlier?.nacks),
    pliPerS: perS(stream.plis, earlier?.plis),
  });
  const kinds = new Map<string, 'audio' | 'video'>();
  const owners = new Map<string, string>();
  for (const { id, tracks } of [...view.peers, ...view.components]) {
    for (const track of tracks) {
      kinds.set(track.id, track.type);
      owners.set(track.id, id);
    }
  }

  const inbound = (now?.inbound ?? []).map((stream): Inbound => {
    const earlier = then?.inbound.find((other) => other.ssrc === stream.ssrc && other.trackId === stream.trackId);

    return {
      track: stream.trackId,
      kind: stream.kind,
      codec: stream.codec,
      variant: stream.variant,
      active: stream.active,
      ...rates(stream, earlier),
      jitterMs: Math.round(stream.jitterMs * 1_000) / 1_000,
    };
  });
  const outbound = (now?.outbound ?? []).map((stream): Outbound => {
    const earlier = then?.outbound.find((other) => other.ssrc === stream.ssrc && other.trackId === stream.trackId);
    const published = sourceOf(after, stream);
    const wanted = published.find(({ variant }) => variant === stream.target);
    const wantedBefore = sourceOf(before, stream).find(({ ssrc }) => ssrc === wanted?.ssrc);

    return {
      track: stream.trackId,
      from: owners.get(stream.trackId) ?? null,
      kind: kinds.get(stream.trackId) ?? null,
      codec: published[0]?.codec ?? null,
      variant: stream.variant ?? null,
      target: stream.target ?? null,
      reason: stream.paused === true ? 'paused' : stream.reason,
      ...rates(stream, earlier),
      retransmittedPerS: perS(stream.retransmitted, earlier?.retransmitted),
      roundTripMs: stream.roundTripMs ?? null,
      targetBps: wanted?.active === true ? Math.round(8 * perS(wanted.bytes, wantedBefore?.bytes)) : null,
    };
  });

  return {
    sampledMs: Math.round(ms),
    usedBps: now === undefined ? 0 : Math.round(8 * perS(now.bytesSent, then?.bytesSent)),
    inbound,
    outbound,
  };
}

/** Returns the share of packets lost between two samples. */
function lossOf(stream: StreamStats, earlier: StreamStats | undefined): number {
  const lost = Math.max(0, stream.lost - (earlier?.lost ?? 0));
  const expected = lost + Math.max(0, stream.packets - (earlier?.packets ?? 0));

  return expected === 0 ? 0 : Math.round((lost / expected) * 10_000) / 10_000;
}

/** Returns the encodings of a track as its publisher sends them. */
function sourceOf(stats: RoomMediaStats | undefined, { trackId }: OutboundTrackStats): InboundTrackStats[] {
  return stats?.transports.flatMap(({ inbound }) => inbound.filter((stream) => stream.trackId === trackId)) ?? [];
}

export function transportOf(stats: RoomMediaStats | undefined, peer: string): TransportStats | undefined {
  return stats?.transports.find(({ peerId }) => peerId === peer);
}
