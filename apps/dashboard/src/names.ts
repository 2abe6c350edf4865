// Names of people and components.
import type { ComponentType } from '@bloom/server-sdk';

/** User-facing name of each kind of component. */
const TITLES = {
  hls: 'HLS stream',
  recording: 'Recording',
  rtsp: 'Camera (RTSP, SRT, RTMP)',
  file: 'File',
  sip: 'Phone (SIP)',
} satisfies Record<ComponentType, string>;

/** Returns the name of a kind of component, or the kind itself if the dashboard does not know it. */
export function titleOf(type: string): string {
  return Object.entries(TITLES).find(([kind]) => kind === type)?.[1] ?? type;
}

/** Returns a name from metadata, which may contain anything. The backend's name comes first. */
export function nameOf(metadata: unknown, peerId: string): string {
  const { name, server, peer } = fieldsOf(metadata);
  for (const candidate of [fieldsOf(server)['name'], fieldsOf(peer)['name'], name]) {
    if (typeof candidate === 'string' && candidate.trim() !== '') return candidate.trim().slice(0, 40);
  }
  return `Guest ${peerId.slice(0, 4)}`;
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return (value ?? {}) as Readonly<Record<string, unknown>>;
}
