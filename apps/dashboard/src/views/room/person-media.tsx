import type { PeerStats } from '@bloom/server-sdk';
import { useEffect, useState } from 'react';
import { useSession } from '../../session.js';
import { bitrate, Chart, milliseconds, percent } from '../../ui/chart.js';
import { Notice } from '../../ui/notice.js';
import { usePolled } from '../../ui/use-polled.js';

/** Number of samples in a chart, about one per second, because the server measures for a second. */
const SAMPLES = 60;
const PAUSE_MS = 200;
/** Reasons why a lower variant than the wanted one is sent. */
interface Scale {
  readonly text: (value: number) => string;
  /** Smallest value at the top of the scale. */
  readonly least: number;
}

const REASONS: Readonly<Record<string, string>> = {
  low_bandwidth: 'the connection carries no more',
  encoding_inactive: 'the sender sends no better one',
};
const VARIANTS = { l: 'low', m: 'medium', h: 'high' } as const;

/** Live bit rates, losses and round trips of a person. */
export function PersonMedia({ roomId, peerId }: { readonly roomId: string; readonly peerId: string }) {
  const { api } = useSession();
  const { value, problem } = usePolled(() => api.peerStats(roomId, peerId), {
    key: `${roomId}/${peerId}`,
    pauseMs: PAUSE_MS,
  });
  const [history, setHistory] = useState<readonly PeerStats[]>([]);
  useEffect(() => {
    if (value !== undefined) setHistory((before) => [...before, value].slice(-SAMPLES));
  }, [value]);

  const chart = (label: string, read: (stats: PeerStats) => number, { text, least }: Scale) => (
    <Chart key={label} label={label} values={history.map(read)} length={SAMPLES} text={text} least={least} />
  );
  const transport = value?.transport;
  return (
    <section className="card">
      <h2>Connection</h2>
      {problem !== null && <p className="hint">{problem.message}</p>}
      {value === undefined && problem === null && <p className="hint">Measuring …</p>}
      {value !== undefined && (transport === null || transport === undefined) && (
        <p className="hint">There is no media connection yet.</p>
      )}
      {value !== undefined && transport !== null && transport !== undefined && (
        <>
          <MediaHint media={transport.media} />
          <div className="charts">
            {chart('Sends', (stats) => sum(stats.inbound), { text: bitrate, least: 1e5 })}
            {chart('Receives', (stats) => stats.transport?.usedBps ?? 0, { text: bitrate, least: 1e5 })}
            {chart('Lost on the way here', (stats) => worstLoss(stats.inbound), { text: percent, least: 0.05 })}
            {chart('Lost on the way there', (stats) => worstLoss(stats.outbound), { text: percent, least: 0.05 })}
            {chart('Round trip', roundTrip, { text: milliseconds, least: 50 })}
            {chart('Can receive', (stats) => stats.transport?.estimationBps ?? 0, { text: bitrate, least: 1e5 })}
          </div>
          <p className="hint">
            {transport.protocol.toUpperCase()} from {transport.remote ?? 'an unknown address'}, ICE {transport.ice},
            DTLS {transport.dtls}, on {value.node}
          </p>
          {value.client !== undefined && <p className="hint">Client: {clientName(value.client)}</p>}
          {transport.worker !== undefined && (
            <p className="hint">Media {transport.workerReason ?? `worker ${transport.worker}`}</p>
          )}
          <Streams stats={value} />
        </>
      )}
    </section>
  );
}

const CLIENTS: Readonly<Record<string, string>> = {
  jellyfish: 'an SDK of Jellyfish',
  bloom: '@bloom/client',
  whip: 'WHIP',
  whep: 'WHEP',
  livekit: 'LiveKit',
};

/** Names a client as people know it; LiveKit's kinds follow the name. */
function clientName(client: string): string {
  const [face = '', ...kind] = client.split(' ');
  const name = CLIENTS[face] ?? face;

  return kind.length === 0 ? name : `${name}, ${kind.join(' ')}`;
}

/** What keeps this person's media from passing, and what helps. */
const PROBLEMS = {
  NO_CHECKS: 'Nothing arrives from this person at the media address. Check JF_WEBRTC_TURN_IP and the firewall.',
  ONE_WAY: 'Packets arrive, but answers do not reach this person. Check routes and NAT.',
  DTLS_FAILED: 'The path works, but the encryption handshake does not complete.',
  NO_MEDIA: 'The path works, but a published track sends nothing.',
} as const;

function MediaHint({ media }: { readonly media: NonNullable<PeerStats['transport']>['media'] }) {
  if (media?.state === 'interrupted') return <p className="hint">Nothing has arrived for a while.</p>;
  if (media?.problem === undefined) return null;
  return (
    <Notice kind="problem" title={media.state === 'failed' ? 'The media failed' : 'Media is missing'}>
      {PROBLEMS[media.problem]}
    </Notice>
  );
}

function Streams({ stats: { inbound, outbound } }: { readonly stats: PeerStats }) {
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls sideways on narrow screens
    <div className="scroll" role="region" aria-label="Streams" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">Stream</th>
            <th scope="col">Quality</th>
            <th scope="col">Bit rate</th>
            <th scope="col">Loss</th>
            <th scope="col">Remark</th>
          </tr>
        </thead>
        <tbody>
          {inbound.map(({ track, variant, kind, codec, bps, loss, active, jitterMs }) => (
            <tr key={`in ${track} ${variant}`}>
              <th scope="row">sends {kind}</th>
              <td>
                {codec}
                {kind === 'video' && `, ${VARIANTS[variant]}`}
              </td>
              <td>{bitrate(bps)}</td>
              <td>{percent(loss)}</td>
              <td>{active ? `jitter ${milliseconds(jitterMs)}` : 'paused'}</td>
            </tr>
          ))}
          {outbound.map(({ track, kind, codec, variant, target, layers, bps, loss, reason, roundTripMs }) => (
            <tr key={`out ${track}`}>
              <th scope="row">receives {kind}</th>
              <td>
                {codec !== null && `${codec}, `}
                {flowing(variant, target, layers)}
              </td>
              <td>{bitrate(bps)}</td>
              <td>{percent(loss)}</td>
              <td>{REASONS[reason] ?? (roundTripMs === null ? '' : `round trip ${milliseconds(roundTripMs)}`)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A track in several sizes has a target; its layers are those of the size that flows. */
function flowing(variant: keyof typeof VARIANTS | null, target: string | null, layers: string | null): string {
  const size = variant === null ? '–' : VARIANTS[variant];
  if (layers === null) return size;
  return target === null ? layers : `${size}, ${layers}`;
}

function sum(streams: readonly { readonly bps: number }[]): number {
  return streams.reduce((total, { bps }) => total + bps, 0);
}

function worstLoss(streams: readonly { readonly loss: number }[]): number {
  return Math.max(0, ...streams.map(({ loss }) => loss));
}

function roundTrip({ outbound }: PeerStats): number {
  return Math.max(0, ...outbound.map(({ roundTripMs }) => roundTripMs ?? 0));
}
