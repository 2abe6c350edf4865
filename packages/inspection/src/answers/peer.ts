import type { PeerView } from '@bloom/rooms';
import { explainChoice, type TransportStats } from '@bloom/sfu';
import type { Asker } from '../inspector/inspector.js';
import { InspectionError } from '../errors.js';
import type { AnswerOf, ParsedRequest } from '../protocol/types.js';
import { addressOf, nameOf, roomNamed, shown, type MediaAnswerContext } from './media-lines.js';
import { sampleTwice } from './media-samples.js';
import { peerRates, transportOf } from './peer-rates.js';

type Peer = AnswerOf<'peer'>;

/** Returns a peer with what its transport carries per second. @throws InspectionError UNKNOWN_ROOM, UNKNOWN_PEER */
export async function peerAnswer(
  context: MediaAnswerContext,
  { room, peer, sampleMs }: ParsedRequest<'peer'>,
  { timeoutMs }: Asker,
): Promise<Peer> {
  const view = roomNamed(context, room);
  const found = view.peers.find(({ id }) => id === peer);
  if (found === undefined) throw new InspectionError('UNKNOWN_PEER', `the room ${room} has no peer ${peer}`);
  const media = context.sources.rooms.media(room);
  const samples = await sampleTwice(media, Math.min(sampleMs, timeoutMs / 2));
  const { usedBps, ...rates } = peerRates({ view, peer, ...samples });
  const transport = transportOf(samples.after, peer);

  return {
    room,
    id: peer,
    node: context.sources.self,
    status: found.status,
    name: nameOf(context, found.metadata),
    client: context.sources.rooms.clientOf(room, peer) ?? null,
    metadata: shown(context, found.metadata),
    ...permissionsOf(found),
    transport: transport === undefined ? null : transportAnswer(context, { room, transport, usedBps }),
    ...(transport === undefined ? {} : dataOf(context, transport)),
    ...rates,
  };
}

function permissionsOf({ permissions }: PeerView): Pick<Peer, 'permissions'> {
  if (permissions === undefined) return {};
  const { publish } = permissions;

  return { permissions: { ...permissions, publish: typeof publish === 'boolean' ? publish : [...publish] } };
}

function transportAnswer(
  { sources }: MediaAnswerContext,
  { room, transport, usedBps }: { room: string; transport: TransportStats; usedBps: number },
): Peer['transport'] {
  const { peerId, remoteAddress, remotePort } = transport;
  const media = sources.rooms.media(room);
  const endpoint = media?.endpointOf(peerId);
  const choice = media?.choiceOf(peerId);
  if (endpoint === undefined) return null;

  return {
    ice: transport.iceState,
    dtls: transport.dtlsState,
    media: transport.media,
    protocol: transport.protocol,
    local: addressOf(endpoint),
    worker: endpoint.worker ?? null,
    why: choice === undefined ? null : explainChoice(choice),
    remote: remoteAddress === undefined ? null : `${remoteAddress}:${remotePort}`,
    bytesReceived: transport.bytesReceived,
    bytesSent: transport.bytesSent,
    estimationBps: transport.estimationBps ?? null,
    usedBps,
  };
}

function dataOf({ redactor }: MediaAnswerContext, { data }: TransportStats): Pick<Peer, 'data'> {
  if (data === undefined) return {};
  const channels = data.channels.map((channel) => ({ ...channel, label: redactor.text(channel.label) }));

  return { data: { waitingBytes: data.waitingBytes, channels } };
}
