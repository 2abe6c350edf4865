import { DataPacket, DataPacket_Kind, UserPacket } from '@livekit/protocol';
import type { RoomMessage } from '@bloom/rooms';
import type { ChannelName } from '@bloom/webrtc';
import { decode, type FieldCount, MAX_FIELDS } from '../decode.js';
import { asRecord } from '../record.js';
import type { Participants } from './participants.js';
import { TickedAllowance } from './ticked-allowance.js';

export const RELIABLE_LABEL = '_reliable';
const LOSSY_LABEL = '_lossy';
/** The channels of a client. Data tracks are not supported, so their messages are dropped. */
export const DATA_LABELS: readonly string[] = [RELIABLE_LABEL, LOSSY_LABEL, '_data_track'];
/** Channels that the server opens to a client that receives on a connection of its own. */
export const SERVER_CHANNELS: readonly ChannelName[] = [
  { label: RELIABLE_LABEL, protocol: '', kind: { ordered: true } },
  { label: LOSSY_LABEL, protocol: '', kind: { ordered: false, maxRetransmits: 0 } },
];

/** Receivers that one packet may name. */
const MAX_DESTINATIONS = 1_000;
/** Fields of all packets of a client. Each costs a microsecond, and two bytes are enough for one. */
const FIELDS = { burst: 50_000, perSecond: 20_000 };

/** Kinds of messages that a participant may send to others. */
const PASSED: ReadonlySet<string | undefined> = new Set([
  'user',
  'chatMessage',
  'sipDtmf',
  'rpcRequest',
  'rpcAck',
  'rpcResponse',
  'streamHeader',
  'streamChunk',
  'streamTrailer',
  'encryptedPacket',
]);

/** A message on its way to these peers. */
export interface Delivery {
  peerIds: string[];
  label: string;
  data: Uint8Array;
}

export interface Sender {
  sid: string;
  identity: string;
  kind: string;
  hidden: boolean;
}

/** Decides who receives a client's data packets, and sets their sender whatever the client says. */
export class OutgoingData {
  readonly fields = new TickedAllowance(FIELDS);
  readonly #others: Participants;
  /** Number of the last reliable packet of the client. */
  #lastSequence = 0;

  constructor(others: Participants) {
    this.#others = others;
  }

  get lastSequence(): number {
    return this.#lastSequence;
  }

  /** Returns where a packet goes; undefined if it is dropped. */
  deliver(label: string, bytes: Uint8Array, sender: Sender): Delivery | 'too many fields' | undefined {
    const max = Math.min(MAX_FIELDS, this.fields.left);
    const count = { left: max };
    const packet = read(bytes, count);
    this.fields.spend(max - count.left);
    if (packet === undefined && count.left < 1) return 'too many fields';
    if (packet === undefined || !this.#isPassed(packet, sender)) return undefined;
    // A client that has resumed repeats everything that it does not know to have arrived.
    if (label === RELIABLE_LABEL && packet.sequence > 0) {
      if (packet.sequence <= this.#lastSequence) return undefined;
      this.#lastSequence = packet.sequence;
    }
    const peerIds = this.#receivers(packet);
    if (peerIds.length === 0) return undefined;
    const [sid, identity] = sender.hidden ? ['', ''] : [sender.sid, sender.identity];
    packet.participantSid = sid;
    packet.participantIdentity = identity;
    if (packet.value.case === 'user') {
      packet.value.value.participantSid = sid;
      packet.value.value.participantIdentity = identity;
    }

    return { peerIds, label, data: packet.toBinary() };
  }

  #isPassed({ value }: DataPacket, { kind }: Sender): boolean {
    return PASSED.has(value.case) || (value.case === 'transcription' && kind === 'agent');
  }

  #receivers({ destinationIdentities, value }: DataPacket): string[] {
    const user = value.case === 'user' ? value.value : NO_USER;
    const named = [destinationIdentities, user.destinationSids, user.destinationIdentities];
    if (named.some(({ length }) => length > MAX_DESTINATIONS)) return [];
    const sids = new Set(user.destinationSids);
    const identities = new Set([...destinationIdentities, ...user.destinationIdentities]);
    const isForAll = sids.size === 0 && identities.size === 0;
    const peerIds: string[] = [];
    for (const { id, sid, isNative, record } of this.#others.all()) {
      if (isNative && (isForAll || sids.has(sid) || identities.has(record.identity))) peerIds.push(id);
    }

    return peerIds;
  }
}

/** Key under which a backend's message holds a whole packet, base64. */
export const PACKET_KEY = 'livekitPacket';

/** Returns a message of the backend on its way to one client. */
export function fromBackend({ topic, data }: RoomMessage, peerId: string): Delivery {
  const given = asRecord(data)[PACKET_KEY];
  const packet = typeof given === 'string' ? read(Buffer.from(given, 'base64')) : undefined;
  const payload = Buffer.from(JSON.stringify(data));
  const sent = packet ?? new DataPacket({ value: { case: 'user', value: new UserPacket({ topic, payload }) } });
  const label = sent.kind === DataPacket_Kind.LOSSY ? LOSSY_LABEL : RELIABLE_LABEL;

  return { peerIds: [peerId], label, data: sent.toBinary() };
}

const NO_USER = new UserPacket();

/** Returns a packet with the fields that only its receivers know. */
function read(bytes: Uint8Array, count?: FieldCount): DataPacket | undefined {
  try {
    return decode(DataPacket, bytes, { readUnknownFields: true, ...(count === undefined ? {} : { count }) });
  } catch {
    return undefined;
  }
}
