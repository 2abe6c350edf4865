import { randomBytes } from 'node:crypto';
import { addressBytes } from '@bloom/net';
import { type DtlsCertificate, identityOf } from '../dtls/certificate.js';
import { Nonces } from '../relay/nonces.js';
import { Attribute, MessageClass, Method } from '../stun/constants.js';
import { StunWriter } from '../stun/writer.js';
import { MediaPortCore } from '../transport/media-port-core.js';
import { HandshakeClient } from './handshake-client.js';

const CLIENT = '192.0.2.2';
const CHECKS = 4;

/**
 * Runs the joins of `rounds` synthetic clients: join code is then compiled before the first real client arrives on the
 * thread that forwards all media. Touches no socket. Returns how many clients got keys. A join takes about 2 ms.
 */
export function warmUpJoins(certificate: DtlsCertificate, rounds: number): number {
  let sent: Buffer[] = [];
  let nowMs = 1_000_000;
  let connected = 0;
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
    const transport = core.openTransport({
      id: localUfrag,
      relay: { username: localUfrag, password: localPwd },
      handlers: {
        onRtp: () => undefined,
        onRtcp: () => undefined,
        onIceConnected: () => undefined,
        onDtlsConnected: () => (connected += 1),
        onFailed: () => undefined,
        onSilent: () => undefined,
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
    core.tick();
    transport.close();
  }
  core.close();
  return connected;
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
