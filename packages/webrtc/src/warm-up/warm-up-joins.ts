import { randomBytes } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { addressBytes } from '@bloom/net';
import { DataLink } from '../data/data-link.js';
import { type DtlsCertificate, identityOf } from '../dtls/certificate.js';
import { Nonces } from '../relay/nonces.js';
import { Attribute, MessageClass, Method } from '../stun/constants.js';
import { StunWriter } from '../stun/writer.js';
import { MediaPortCore } from '../transport/media-port-core.js';
import type { PeerTransport } from '../transport/api.js';
import { ChannelClient } from './channel-client.js';
import { HandshakeClient } from './handshake-client.js';

const CLIENT = '192.0.2.2';
const CHECKS = 4;
/** LiveKit's clients open three channels when they join. */
const CHANNELS = 3;

/**
 * Runs the joins of `rounds` synthetic clients, each with data channels: join code is then compiled before the first
 * real client arrives on the thread that forwards all media. Touches no socket. Resolves with how many clients got all
 * their channels. A join takes about 2 ms.
 */
export async function warmUpJoins(certificate: DtlsCertificate, rounds: number): Promise<number> {
  let sent: Buffer[] = [];
  let nowMs = 1_000_000;
  let joined = 0;
  const core = new MediaPortCore({
    advertised: { bytes: addressBytes('192.0.2.1') ?? Buffer.alloc(4), port: 1 },
    certificate,
    nonces: new Nonces(),
    clock: () => (nowMs += 1),
    sockets: {
      send: (datagram) => {
        sent.push(datagram);
        return true;
      },
    },
    onSlotKept: () => undefined,
  });
  for (let round = 0; round < rounds; round++) {
    const localUfrag = `warm${round}`;
    const localPwd = 'a password of enough letters';
    const port = 10_000 + round;
    const link = dataLink(() => transport);
    const transport: PeerTransport = core.openTransport({
      id: localUfrag,
      relay: { username: localUfrag, password: localPwd },
      handlers: {
        onRtp: () => undefined,
        onRtcp: () => undefined,
        onIceConnected: () => undefined,
        onDtlsConnected: () => undefined,
        onFailed: () => undefined,
        onSilent: () => undefined,
        onData: (packet) => void link.receive(packet),
      },
    });
    transport.negotiate({
      generation: 1,
      ice: { localUfrag, localPwd, remoteUfrag: 'them', remotePwd: localPwd },
      fingerprint: certificate.fingerprint,
    });
    for (let i = 0; i < CHECKS; i++) core.receive(asReceived(check(localUfrag, localPwd)), CLIENT, port);
    const client = new HandshakeClient(identityOf(certificate));
    sent = [];
    core.receive(asReceived(client.hello()), CLIENT, port);
    const [flight] = sent;
    if (flight !== undefined) core.receive(asReceived(client.answer(flight)), CLIENT, port);
    const channels = new ChannelClient((packet) => core.receive(asReceived(client.seal(packet)), CLIENT, port));
    /** Lets the association take a step, and the client answer it. */
    const step = async (): Promise<void> => {
      await nextTurn();
      const answers = sent.splice(0);
      for (const each of answers) {
        const packet = client.open(each);
        if (packet !== undefined) channels.receive(packet);
      }
    };
    if (flight !== undefined) channels.connect();
    await step();
    await step();
    for (let stream = 0; stream < CHANNELS; stream++) channels.open(2 * stream, `channel-${stream}`);
    await step();
    if (channels.confirmed === CHANNELS) joined += 1;
    core.tick();
    link.end();
    transport.close();
  }
  core.close();
  return joined;
}

function dataLink(transport: () => PeerTransport): DataLink {
  return new DataLink({
    send: (packet) => void transport().sendData(packet),
    inTurn: (step) => transport().inTurn(step),
    onUp: () => undefined,
    onOpened: () => undefined,
    onMessage: () => undefined,
    onClosed: () => undefined,
    onDropped: () => undefined,
    onDown: () => undefined,
  });
}

/** Returns a nominating connectivity check (RFC 8445 section 7.2). */
function check(ufrag: string, password: string): Buffer {
  return new StunWriter(Method.binding, MessageClass.request, randomBytes(12))
    .text(Attribute.username, `${ufrag}:them`)
    .uint32(Attribute.priority, 0x6e7f00ff)
    .bytes(Attribute.iceControlling, randomBytes(8))
    .bytes(Attribute.useCandidate, Buffer.alloc(0))
    .integrity(password)
    .fingerprint()
    .finish();
}

/**
 * Returns a copy with the hidden class of a received datagram. Unlike `Buffer.alloc` and `Buffer.from`, native code
 * creates those from a `Uint8Array`; V8 discards code compiled for one class when it first meets the other.
 */
export function asReceived(bytes: Uint8Array): Buffer {
  return Object.setPrototypeOf(new Uint8Array(bytes), Buffer.prototype) as Buffer;
}
