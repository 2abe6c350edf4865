import type { RoomView } from '@bloom/rooms';
import {
  type InboundTrackStats,
  layersText,
  type OutboundTrackStats,
  type RoomMediaStats,
  type StreamStats,
  type TransportStats,
} from '@bloom/sfu';
import type { AnswerOf } from '../protocol/types.js';
import type { Samples } from './media-samples.js';

type Inbound = AnswerOf<'peer'>['inbound'][number];
type Outbound = AnswerOf<'peer'>['outbound'][number];

export interface PeerRatesOptions extends Samples {
  view: RoomView;
  peer: string;
}

export interface PeerRates {
  sampledMs: number;
  usedBps: number;
  inbound: Inbound[];
  outbound: Outbound[];
}

/** Returns what a peer sends and receives per second, computed from two samples. */
export function peerRates({ view, peer, ...samples }: PeerRatesOptions): PeerRates {
  const { before, after, ms } = samples;
  const now = transportOf(after, peer);
  const then = transportOf(before, peer);
  const tracks = tracksById(view);

  return {
    sampledMs: Math.round(ms),
    usedBps: now === undefined ? 0 : bitsPerSecond(now.bytesSent, then?.bytesSent, ms),
    inbound: (now?.inbound ?? []).map((stream) => inboundLine(stream, sameStream(then?.inbound, stream), ms)),
    outbound: (now?.outbound ?? []).map((stream) => ({
      ...trackOf(tracks, stream),
      ...outboundLine(stream, sameStream(then?.outbound, stream), samples),
    })),
  };
}

interface PublishedTrack {
  kind: 'audio' | 'video';
  owner: string;
}

function tracksById({ peers, components }: RoomView): ReadonlyMap<string, PublishedTrack> {
  return new Map(
    [...peers, ...components].flatMap(({ id: owner, tracks }) =>
      tracks.map(({ id, type: kind }) => [id, { kind, owner }] as const),
    ),
  );
}

function trackOf(
  tracks: ReadonlyMap<string, PublishedTrack>,
  { trackId }: OutboundTrackStats,
): Pick<Outbound, 'track' | 'from' | 'kind'> {
  const track = tracks.get(trackId);

  return { track: trackId, from: track?.owner ?? null, kind: track?.kind ?? null };
}

function inboundLine(stream: InboundTrackStats, earlier: InboundTrackStats | undefined, ms: number): Inbound {
  return {
    track: stream.trackId,
    kind: stream.kind,
    codec: stream.codec,
    variant: stream.variant,
    active: stream.active,
    ...streamRates(stream, earlier, ms),
    jitterMs: Math.round(stream.jitterMs * 1_000) / 1_000,
  };
}

function outboundLine(
  stream: OutboundTrackStats,
  earlier: OutboundTrackStats | undefined,
  { before, after, ms }: Samples,
): Omit<Outbound, 'track' | 'from' | 'kind'> {
  const published = sourceOf(after, stream);
  const wanted = published.find(({ variant }) => variant === stream.target);
  const wantedBefore = sourceOf(before, stream).find(({ ssrc }) => ssrc === wanted?.ssrc);

  return {
    codec: stream.codec,
    variant: stream.variant ?? null,
    target: stream.target ?? null,
    reason: stream.paused === true ? 'paused' : stream.reason,
    layers: stream.layers === undefined ? null : layersText(stream.layers),
    ...streamRates(stream, earlier, ms),
    retransmittedPerS: perSecond(stream.retransmitted, earlier?.retransmitted, ms),
    roundTripMs: stream.roundTripMs ?? null,
    targetBps: wanted?.active === true ? bitsPerSecond(wanted.bytes, wantedBefore?.bytes, ms) : null,
  };
}

function streamRates(stream: StreamStats, earlier: StreamStats | undefined, ms: number) {
  return {
    bps: bitsPerSecond(stream.bytes, earlier?.bytes, ms),
    packetsPerS: perSecond(stream.packets, earlier?.packets, ms),
    loss: lossOf(stream, earlier),
    nackPerS: perSecond(stream.nacks, earlier?.nacks, ms),
    pliPerS: perSecond(stream.plis, earlier?.plis, ms),
  };
}

/** Returns the rate between two readings of a counter, with three decimals. */
function perSecond(later: number, earlier: number | undefined, ms: number): number {
  return Math.max(0, Math.round(((later - (earlier ?? 0)) * 1_000_000) / ms) / 1_000);
}

function bitsPerSecond(laterBytes: number, earlierBytes: number | undefined, ms: number): number {
  return Math.round(8 * perSecond(laterBytes, earlierBytes, ms));
}

function sameStream<T extends { ssrc: number; trackId: string }>(
  streams: readonly T[] | undefined,
  { ssrc, trackId }: T,
): T | undefined {
  return streams?.find((stream) => stream.ssrc === ssrc && stream.trackId === trackId);
}

/** Returns the share of packets lost between two samples. */
function lossOf(stream: StreamStats, earlier: StreamStats | undefined): number {
  const lost = Math.max(0, stream.lost - (earlier?.lost ?? 0));
  const expected = lost + Math.max(0, stream.packets - (earlier?.packets ?? 0));

  return expected === 0 ? 0 : Math.round((lost / expected) * 10_000) / 10_000;
}

/** Returns the encodings of a track as its publisher sends them, in the codec that the subscriber gets. */
function sourceOf(stats: RoomMediaStats | undefined, { trackId, codec }: OutboundTrackStats): InboundTrackStats[] {
  const isSource = (stream: InboundTrackStats): boolean => stream.trackId === trackId && stream.codec === codec;

  return stats?.transports.flatMap(({ inbound }) => inbound.filter(isSource)) ?? [];
}

export function transportOf(stats: RoomMediaStats | undefined, peer: string): TransportStats | undefined {
  return stats?.transports.find(({ peerId }) => peerId === peer);
}
