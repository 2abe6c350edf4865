/** The clients of the load generators: participants on the address of the private network, and helpers for loads. */
import { type LoadCodec, openConnection, transportOf } from '@bloom/participant';
import type { RTCPeerConnection, RtcpPacket } from 'werift';
import { address } from './private-network.js';

/** Creates a participant's connection on the private network. */
export function connection(codec: LoadCodec = 'vp8'): RTCPeerConnection {
  return openConnection({ iceInterfaceAddresses: { udp4: address } }, codec);
}

/** Sends one RTCP compound, encrypted by werift's session. */
export function sendRtcp(pc: RTCPeerConnection, compound: Buffer): void {
  const [transport] = pc.dtlsTransports;
  void transport?.sendRtcp([{ serialize: () => compound } as unknown as RtcpPacket]);
}

/** Stops reading a connection's packets. Returns the descriptor of its socket. */
export function stopReading(pc: RTCPeerConnection): number {
  const { socket } = transportOf(pc);
  // Internal, but no public way exists to stop reading without closing.
  const handle = (socket as unknown as { _handle: { fd: number; recvStop(): void } })._handle;
  handle.recvStop();

  return handle.fd;
}
